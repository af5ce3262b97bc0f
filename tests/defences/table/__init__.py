"""The defences: where each stands, what is left without it, and the tests that must then fail."""

from tests.defences.table.hostile_text import HOSTILE_TEXT
from tests.defences.table.what_is_allowed import WHAT_IS_ALLOWED
from tests.defences.table.what_is_bounded import WHAT_IS_BOUNDED
from tests.defences.table.what_is_held import WHAT_IS_HELD
from tests.defences.table.what_is_shown import WHAT_IS_SHOWN
from tests.defences.table.what_was_approved import WHAT_WAS_APPROVED
from tests.defences.table.who_comes_in import WHO_COMES_IN
from tests.defences.table.who_may_decide import WHO_MAY_DECIDE

DEFENCES = (
    *WHO_MAY_DECIDE,
    *WHAT_WAS_APPROVED,
    *WHAT_IS_ALLOWED,
    *WHO_COMES_IN,
    *WHAT_IS_BOUNDED,
    *HOSTILE_TEXT,
    *WHAT_IS_HELD,
    *WHAT_IS_SHOWN,
)
