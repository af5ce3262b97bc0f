"""`evidence`: a file that shows what was decided about some calls, and the check of such a file."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from whisper_tui.cli.output_format import print_json
from whisper_tui.cli.subcommand import (
    DONE,
    REFUSED,
    UNAVAILABLE,
    Options,
    Subcommands,
    complain,
    home_of,
    how_to_install,
)
from whisper_tui.model.errors import InvalidRequest, Unavailable
from whisper_tui.model.text import visible

if TYPE_CHECKING:
    from whisper_tui.model.evidence import EvidenceReport
    from whisper_tui.supervisor.journal.sqlite_file import Head

VERIFY = "verify"


def add_evidence(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "evidence",
        "write a file that proves what was decided about calls, or verify one",
        _evidence,
        details="`evidence verify FILE` needs the file alone: no supervisor, journal or network. Its exit code is 0 if "
        "nothing in the file contradicts itself, 1 if something was changed, left out or forged, or if the end given "
        "by --head is not in it, and 3 if the file cannot be read, or if a signature could not be checked, "
        "because the extra `phone` or ssh-keygen is missing.",
    )
    parser.add_argument(
        "words", nargs="+", metavar="SESSION|ID", help="sessions and numbers of calls; or: verify, and the file"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="the file to write, readable by you alone")
    parser.add_argument("--contents", action="store_true", help="put the recorded output of the calls into the file")
    parser.add_argument(
        "--head", metavar="END", help="an end that history verify has printed: write up to it, or compare with it"
    )
    parser.add_argument("--json", action="store_true", help="with verify: print one object")


def _evidence(options: Options) -> int:
    from whisper_tui.supervisor.journal.sqlite_file import Head

    head = Head.parse(options.head) if options.head is not None else None
    if options.words[0] == VERIFY:
        if len(options.words) != 2 or options.output is not None or options.contents:
            raise InvalidRequest(
                "evidence verify takes one file and nothing to write", hint="whisper-tui evidence verify FILE"
            )
        return _verify(Path(options.words[1]), head, as_json=options.json)
    if options.json:
        raise InvalidRequest("--json belongs to evidence verify", hint="The file itself is lines of JSON")
    if options.output is None:
        raise InvalidRequest("evidence needs a file to write", hint="Name it with -o FILE")
    return _write(options, head)


def _write(options: Options, head: "Head | None") -> int:
    import time

    from whisper_tui.present.quantities import count
    from whisper_tui.supervisor.evidence.bundle_writer import EvidenceWriter, write_file

    writer = EvidenceWriter(Path(home_of(options).state), time.time)
    file = Path(options.output)
    found = write_file(writer, file, options.words, head, contents=options.contents)
    said = [f"{count(found.calls, 'call')} in {count(found.shown, 'event')} were written to {visible(str(file))}"]
    if found.masked:
        said.append(f"{count(found.masked, 'event')} of them shown without their secrets")
    if found.unlinked:
        said.append(f"{count(found.unlinked, 'event')} of them of an earlier format, which the file cannot prove")
    if found.unkept:
        said.append(f"the output of {count(found.unkept, 'run')} left out: no longer kept, or too long")
    sys.stderr.write(f"whisper-tui: {'; '.join(said)}\n")
    if found.end:
        sys.stderr.write(f"whisper-tui: the chain in it ends at {found.end}\n")
    return DONE


def _verify(file: Path, head: "Head | None", *, as_json: bool) -> int:
    from whisper_tui.present.evidence_text import evidence_lines, not_proven, proven
    from whisper_tui.supervisor.evidence.evidence_check import check_evidence

    try:
        report = check_evidence(file, head)
    except OSError as error:
        raise Unavailable(f"{file} cannot be read: {error.strerror}", hint="Name the file to verify") from None
    if as_json:
        said = {"proven": list(proven(report)), "not_proven": list(not_proven(report))} if not report.problems else {}
        print_json({"file": str(file), **report.model_dump(mode="json"), **said})
    elif not report.problems:
        sys.stdout.writelines(f"{line}\n" for line in evidence_lines(report))
    for problem in report.problems:
        complain(f"{file} proves nothing: {visible(problem)}")
    if report.problems:
        return REFUSED
    if report.noted == "outside":
        complain(f"the end that you named is not in the part of the chain that {file} holds")
        return REFUSED
    return _unchecked(report)


def _unchecked(report: "EvidenceReport") -> int:
    found = [each.signature for call in report.calls for each in call.decisions]
    unchecked = [each for each in found if each.signed == "unchecked"]
    if any(each.phone for each in unchecked):
        complain(f"signatures of phones were not checked. {how_to_install('phone')}")
    if any(not each.phone for each in unchecked):
        complain("signatures of the desk were not checked. Install OpenSSH's client (ssh-keygen)")
    return UNAVAILABLE if unchecked else DONE
