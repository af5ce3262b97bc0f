"""The parts of the cockpit that draw."""
