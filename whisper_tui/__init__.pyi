"""Names of the library, for type checkers; `__init__.py` loads each one when it is first used."""

from whisper_tui.library import Agent as Agent
from whisper_tui.library import connect as connect
from whisper_tui.library import in_process as in_process
from whisper_tui.model.call import Argv as Argv
from whisper_tui.model.call import CallRequest as CallRequest
from whisper_tui.model.call import CommandSpec as CommandSpec
from whisper_tui.model.call import Function as Function
from whisper_tui.model.call import Session as Session
from whisper_tui.model.call import Shell as Shell
from whisper_tui.model.decision import Approve as Approve
from whisper_tui.model.decision import Deny as Deny
from whisper_tui.model.errors import WhisperError as WhisperError
from whisper_tui.model.state import CallRecord as CallRecord
from whisper_tui.tools import AITool as AITool
from whisper_tui.tools import Answer as Answer
from whisper_tui.tools import ArgumentError as ArgumentError
from whisper_tui.tools import CommandTool as CommandTool
from whisper_tui.tools import ToolContext as ToolContext
from whisper_tui.tools import ToolFailure as ToolFailure
from whisper_tui.tools import ToolRegistry as ToolRegistry
from whisper_tui.tools import ToolSet as ToolSet
from whisper_tui.tools import standard_registry as standard_registry

__version__: str
