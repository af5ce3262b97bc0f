"""What holds of a command on this machine holds of one at a place: the same tests, over a connection.

Left out are those that look at files beside the keeper, at the whole environment, or at an executor's own parts.
"""

import pytest

from tests.outside import exhaustive_only
from tests.supervisor.engine.test_keeper_background import *  # noqa: F403
from tests.supervisor.engine.test_keeper_input import *  # noqa: F403
from tests.supervisor.engine.test_keeper_start import *  # noqa: F403
from tests.supervisor.engine.test_keeper_terminal import *  # noqa: F403
from tests.supervisor.engine.test_limits import *  # noqa: F403
from tests.supervisor.engine.test_output_limits import *  # noqa: F403

pytestmark = [pytest.mark.slow, exhaustive_only]
