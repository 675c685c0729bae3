"""The kinds of releases that a plan can ask for, each one value that answers for itself.

kind           what every kind answers
counts         releases of job counts
flows          releases of flows of a quarter and of changes between quarters, from job histories
summaries      releases of models and of posterior summaries
alarm_numbers  the published numbers that alarms compare, with their ends
alarms         which published numbers changed between two releases by more than their noise can explain
"""
