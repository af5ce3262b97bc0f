"""What holds of a command on this machine holds of one at a place: the same tests, over a connection.

Left out are those of files that are at the place, of the whole environment, and of groups that this machine made.
"""

import pytest

from tests.supervisor.engine.test_keeper_background import *  # noqa: F403
from tests.supervisor.engine.test_keeper_input import *  # noqa: F403
from tests.supervisor.engine.test_keeper_start import *  # noqa: F403
from tests.supervisor.engine.test_keeper_terminal import *  # noqa: F403
from tests.supervisor.engine.test_limits import *  # noqa: F403
from tests.supervisor.engine.test_output_limits import *  # noqa: F403

pytestmark = pytest.mark.slow

del test_the_files_of_a_run_are_for_its_owner_only  # noqa: F821
del test_the_command_gets_exactly_the_environment_of_the_order  # noqa: F821
