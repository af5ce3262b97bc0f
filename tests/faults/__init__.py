"""One thing after the other breaks, on purpose: nothing may be lost, nothing untrue be said, and work goes on after."""
