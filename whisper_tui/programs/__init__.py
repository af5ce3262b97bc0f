"""Knowledge of programs: one entry a program in a table, which policy, effects and explanations read."""
