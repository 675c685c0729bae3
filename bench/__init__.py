"""Side by side with peers: same work, same machine, one run; only ratios are quoted."""
