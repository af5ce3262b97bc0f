"""What a call is: values only, no input or output."""
