"""The formal words: who is protected, what a release costs, what is proved and what was spent. No statistics.

`units` says who is protected, `losses` how much a release may reveal, `composition` how losses add up, `guarantee` what
a release promises, `verify` whether a mechanism keeps its promise.

assurance what may be said about releases: every sentence of protection and every bound, or why there is none
plain_words  whom a definition protects, for a reader without mathematics
columns   which columns everybody may know, and which a release protects
split     how one loss is divided among the parts of a release
exchange  what is learnt about one worker
maxima    where functions of many rows are largest, also of densities that jump
distance  how many steps two workforces are apart
requirements  the worst Bayes factor of an informed attacker, by scheme: the Tables paper's Definitions 4.1 to 4.3
belief    what can be believed about an establishment's size afterwards, at most
identification  how sure an informed attacker can become at most, from the guarantee alone
neighbours  pairs of neighbouring cells, for verification
integers  the worst loss of integer noise that is no rounded law
kinds     the worst loss of noise that follows every kind of workers, for the weak definition
outputs   the worst output between two neighbours: the largest loss, or the exact delta
closed_forms  the most that noise of ours loses, by arguments that leave nothing out
drawn     whether drawn integers have the stated probabilities
loss_verdict  what verification found, and on what ground
proofs    which source a proof covers
source_code  the source of a module as it computes
stepped   the worst loss of a radial law that is constant between jumps
"""
