"""Is a privacy claim true? `blackbox` attacks any function by its outputs alone; what it finds is no proof."""
