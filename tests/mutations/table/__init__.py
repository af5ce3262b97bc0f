"""The mutations: where each defence stands, what is left without it, and the tests that must then fail."""

from tests.mutations.table.agents_of_editors import AGENTS_OF_EDITORS
from tests.mutations.table.edits_of_files import EDITS_OF_FILES
from tests.mutations.table.evidence import EVIDENCE
from tests.mutations.table.hostile_text import HOSTILE_TEXT
from tests.mutations.table.phones import PHONES
from tests.mutations.table.places import PLACES
from tests.mutations.table.previews import PREVIEWS
from tests.mutations.table.the_phones_page import THE_PHONES_PAGE
from tests.mutations.table.what_is_allowed import EXPANDED, FORMS_OF_AGENTS, WHAT_IS_ALLOWED
from tests.mutations.table.what_is_bounded import WHAT_IS_BOUNDED
from tests.mutations.table.what_is_held import WHAT_IS_HELD
from tests.mutations.table.what_is_shown import WHAT_IS_SHOWN
from tests.mutations.table.what_looks import WHAT_LOOKS
from tests.mutations.table.what_was_approved import WHAT_WAS_APPROVED
from tests.mutations.table.who_comes_in import WHO_COMES_IN
from tests.mutations.table.who_may_decide import WHO_MAY_DECIDE

MUTATIONS = (
    *WHO_MAY_DECIDE,
    *WHAT_WAS_APPROVED,
    *WHAT_IS_ALLOWED,
    *EXPANDED,
    *FORMS_OF_AGENTS,
    *EDITS_OF_FILES,
    *WHO_COMES_IN,
    *THE_PHONES_PAGE,
    *WHAT_IS_BOUNDED,
    *HOSTILE_TEXT,
    *WHAT_IS_HELD,
    *WHAT_IS_SHOWN,
    *WHAT_LOOKS,
    *AGENTS_OF_EDITORS,
    *PREVIEWS,
    *PLACES,
    *PHONES,
    *EVIDENCE,
)
