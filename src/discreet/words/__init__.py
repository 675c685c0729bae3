"""What is said to people and programs: refusals, their subjects, and the words of each kind of reader.

voices     how parameters are called for four kinds of readers: of Python, a plan, a command, a form
faults     what is wrong, as a value
errors     every exception that discreet raises on purpose
arguments  arguments of the wrong kind, refused by name
cases      complete answers by a word
names      what a column may be called
caveats    what intervals suppose
later      a sequence that is found when somebody looks
progress   how work tells how far it is
extras     optional parts, and the command that installs each
"""
