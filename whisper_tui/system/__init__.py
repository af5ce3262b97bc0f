"""Facts of the machine that several layers need: processes, their marks, and the directories of an instance."""
