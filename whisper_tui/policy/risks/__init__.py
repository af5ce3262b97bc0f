"""The risks of a call: each finding has a stable id and one sentence for the human who decides."""
