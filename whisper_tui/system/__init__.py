"""System functions that several layers need: processes, their marks, and the directories of an instance."""
