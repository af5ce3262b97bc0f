"""Questions over the cockpit; Esc leaves each of them and changes nothing."""
