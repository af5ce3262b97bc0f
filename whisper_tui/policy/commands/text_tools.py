"""Programs that read files and text: their harmless options, and the words with which they name files."""

from functools import cache
from typing import NamedTuple

from whisper_tui.policy.commands.argv import AllowedOptions, Argv, program_name, read_table, take_option
from whisper_tui.policy.commands.read_only_programs import AWK, JQ, SED

# Programs that read files and text. A line: `programs | letters | names | notes`. A letter or name followed by `:` or `=`
# takes a value, by `?` an optional one (see `allowed_options`). Options that write, run or follow are left out on purpose:
# an option that is missing here costs a question, one too many costs an approval that nobody gave.
TEXT_TOOLS = """
ls dir vdir | aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1I:w:T: | all almost-all author escape block-size= ignore-backups
    color? colour? directory dired classify? file-type format= full-time no-group human-readable si
    dereference-command-line dereference-command-line-symlink-to-dir hide= hyperlink? indicator-style= inode ignore=
    kibibytes dereference numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style=
    reverse recursive size sort= time= time-style= tabsize= width= context zero group-directories-first
cat | AbeEnstTuv | show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting
tac | brs: | before regex separator=
head | qvzc:n: | bytes= lines= quiet silent verbose zero-terminated | numbers
tail | fFqvzrc:n:s: | bytes= follow? lines= max-unchanged-stats= pid= quiet silent retry sleep-interval= verbose
    zero-terminated | numbers
wc | cmlLw | bytes chars lines max-line-length words total=
nl | pb:d:f:h:i:l:n:s:v:w: | body-numbering= section-delimiter= footer-numbering= header-numbering= line-increment=
    join-blank-lines= number-format= no-renumber number-separator= number-width= starting-line-number=
rev tsort factor bzcat xzcat zstdcat colrm ul
grep egrep fgrep rgrep | EFGPivwxcLloqsHhnTZzabrRIUyA:B:C:D:d:e:f:m: | extended-regexp fixed-strings basic-regexp perl-regexp
    ignore-case no-ignore-case invert-match word-regexp line-regexp count files-without-match files-with-matches
    only-matching quiet silent no-messages byte-offset with-filename no-filename line-number initial-tab null null-data
    text recursive dereference-recursive line-buffered binary color? colour? regexp= file= max-count= after-context=
    before-context= context= binary-files= devices= directories= exclude= exclude-from= exclude-dir= include= label=
    | numbers
rg | abcFhHiIlLnNoPpqsSuUvVwx0.A:B:C:E:e:f:g:j:M:m:r:t:T:d: | after-context= before-context= context= color= colors=
    column no-column count count-matches case-sensitive ignore-case smart-case files files-with-matches
    files-without-match fixed-strings follow no-follow glob= iglob= heading no-heading hidden no-hidden json line-number
    no-line-number line-regexp max-columns= max-count= max-depth= max-filesize= multiline multiline-dotall no-filename
    with-filename no-ignore no-ignore-vcs no-ignore-parent no-messages null null-data only-matching passthru pcre2
    pretty quiet regexp= replace= sort= sortr= stats text threads= trim type= type-not= type-list unrestricted version
    vimgrep word-regexp invert-match encoding= engine= no-config one-file-system crlf binary include-zero debug trace
    no-unicode context-separator= field-match-separator= hyperlink-format= byte-offset block-buffered line-buffered
    ignore-file= dfa-size-limit= regex-size-limit= no-mmap mmap
ag | acilLnSsuvwA:B:C:G:m: | ackmate all-text count color nocolor column depth= files-with-matches files-without-matches
    filename nofilename hidden ignore= ignore-case line-numbers literal max-count= only-matching stats word-regexp
    invert-match
cut | snzb:c:d:f: | bytes= characters= delimiter= fields= complement only-delimited output-delimiter= zero-terminated
tr | cCdst | complement delete squeeze-repeats truncate-set1
uniq | cdDuizf:s:w: | count repeated all-repeated? skip-fields= group? ignore-case skip-chars= unique zero-terminated
    check-chars= | most=1
comm | 123iz | check-order nocheck-order output-delimiter= total zero-terminated
join | ie:j:t:1:2:a:v:o:z | ignore-case check-order nocheck-order header zero-terminated
paste | szd: | delimiters= serial zero-terminated
fold | bsw: | bytes spaces width=
fmt | cstuw:g:p: | crown-margin prefix= split-only tagged-paragraph uniform-spacing width= goal=
expand | it: | initial tabs=
unexpand | at: | all first-only tabs=
column | txeJLnc:s:o:N:H:R:W:O: | table fillrows keep-empty-lines json columns= separator= output-separator=
    output-width= table-columns= table-hide= table-right= table-wrap= table-order= table-name= table-noheadings
    table-truncate= tree= tree-id= tree-parent=
cmp | blsi:n: | print-bytes ignore-initial= bytes= verbose quiet silent
od | abcdfhilosvxA:j:N:t:w:S: | address-radix= endian= skip-bytes= read-bytes= format= output-duplicates strings?
    traditional width?
hexdump hd | bcCdovxe:n:s: | one-byte-octal one-byte-char canonical two-bytes-decimal length= skip= no-squeezing
xxd | abceEipuhvc:g:l:n:o:s: | | most=1 first
strings | afowe:n:s:t: | all print-file-name bytes= radix= encoding= target= data | numbers
md5sum sha1sum sha224sum sha256sum sha384sum sha512sum | btz | binary text tag zero
b2sum | btzl: | binary text tag zero length=
shasum | bt0a: | algorithm= binary text
md5 | pqrtxs:
cksum | a:l: | algorithm= length= untagged tag zero raw base64 debug
sum | rs | sysv
base64 base32 | diDenuhw: | decode encode ignore-garbage noerrcheck copyright wrap= | most=1
seq | wf:s: | equal-width format= separator= | numbers
stat | fLtxc: | dereference file-system format= printf= terse cached=
file | bikLhNnr0e:F:P: | brief mime mime-type mime-encoding keep-going dereference no-dereference no-buffer raw
    separator= print0 exclude= extension
du | 0abcDhHklLmPsSxd:t:B:X: | all apparent-size block-size= bytes total dereference-args max-depth=
    human-readable inodes dereference no-dereference separate-dirs si summarize threshold= time? time-style=
    exclude-from= exclude= one-file-system null
df | ahHiklmPTB:t:x: | all block-size= human-readable si inodes local no-sync output? portability total type= print-type
    exclude-type=
readlink | efmnqsvz | canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero
realpath | emLPqsz | canonicalize-existing canonicalize-missing logical physical quiet relative-to= relative-base= strip
    no-symlinks zero
basename | azs: | multiple suffix= zero
dirname | z | zero
tree | adlfxiqNQpughsDFCrvtcUXJAnSL:P:I: | gitignore noreport charset= filelimit= si du prune dirsfirst filesfirst sort=
    matchdirs ignore-case inodes device timefmt= noindent nolinks
pygmentize | l:f:
bat | AnpfH:r:l: | plain number show-all language= line-range= highlight-line= style= color= theme= decorations=
    list-languages list-themes
exa eza | 1laTRFGhHiSmuUrdDL:I:s:t: | long grid across recurse tree classify all list-dirs only-dirs level= reverse sort=
    group-directories-first header icons color=
lsd | 1laARtFhSr | long all tree recursive depth= classic human-readable reverse sort= group-dirs= total-size header
    color= icon=
tokei | fsC | files hidden sort= type= exclude= output=
zcat gzcat | fq
zipinfo | 12hlmstvzMTZCx
unzip | lqvZtz1Cpc | | needs=lvZtzpc
nm | aAgnprsuvDCP | demangle? dynamic extern-only undefined-only defined-only size-sort numeric-sort print-size
objdump | adDfhprtTxgGCwj:M:b:m: | disassemble all-headers file-headers section-headers syms dynamic-syms demangle?
    section= no-show-raw-insn
readelf | aehlStgsdnruVAIcWDx:p:w | all file-header program-headers sections symbols dynamic notes relocs wide
size | ABdox | format= radix= total
look | abdft:
iconv | f:t:clsV | from-code= to-code= list silent
numfmt | d:z | from= to= suffix= padding= field= format= grouping header? invalid= round= delimiter= debug
sort | bcCdfghiMmnRrsuVzk:t:S:T: | ignore-leading-blanks dictionary-order ignore-case general-numeric-sort
    ignore-nonprinting month-sort human-numeric-sort numeric-sort random-sort random-source= reverse sort= version-sort
    check? debug key= merge stable field-separator= parallel= buffer-size= temporary-directory= unique zero-terminated
pr | adFfmrtTvD:h:l:n?o:w:W: | double-space form-feed header= length= merge omit-header omit-pagination width= | numbers
"""


@cache
def text_tools() -> dict[str, AllowedOptions]:
    """Return the options of each program of the table."""
    return dict(read_table(TEXT_TOOLS))


class _ToolText(NamedTuple):
    """The words of a program that are text, such as delimiters, patterns and code, and no files."""

    values: frozenset[str] = frozenset()
    """Options whose value is text."""
    operands: int = 0
    """How many of the first operands are text."""
    instead: frozenset[str] = frozenset()
    """Options that take the place of these operands."""


def _text(values: str = "", operands: int = 0, instead: str = "") -> _ToolText:
    return _ToolText(frozenset(values.split()), operands, frozenset(instead.split()))


_GREP = _text("-e --regexp --include --exclude --exclude-dir --label", 1, "-e -f --regexp --file")
_ALL = 1000
_TEXT = {
    "cut": _text("-b -c -d -f --bytes --characters --delimiter --fields --output-delimiter"),
    "tr": _text(operands=_ALL),
    "paste": _text("-d --delimiters"),
    "join": _text("-e -t -o"),
    "nl": _text("-d -s --section-delimiter --number-separator"),
    "sort": _text("-t -k --field-separator --key"),
    "column": _text("-s -o -N -H -R -W -O --separator --output-separator --table-columns"),
    "comm": _text("--output-delimiter"),
    "tac": _text("-s --separator"),
    "seq": _text("-f -s --format --separator", _ALL),
    "numfmt": _text("-d --delimiter --suffix --format", _ALL),
    **dict.fromkeys(("grep", "egrep", "fgrep", "rgrep"), _GREP),
    "rg": _text("-e -g -r --regexp --glob --iglob --replace --context-separator", 1, "-e -f --regexp --file --files"),
    "ag": _text("-G", 1),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _text("-F", 1)),
    **dict.fromkeys(("sed", "gsed"), _text("-e --expression", 1, "-e --expression")),
    "jq": _text(operands=1),
}
_FORMS = {
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), AWK),
    **dict.fromkeys(("sed", "gsed"), SED),
    "jq": JQ,
}


def named_words(argv: Argv) -> Argv:
    """Return the arguments that may name files, the values of options among them: all that are not certainly text.

    Without this, `/` as a delimiter and a pattern that begins with a slash would be taken for directories.
    """
    words = argv[1:]
    name = program_name(argv[0]) if argv and argv[0] is not None else ""
    about = _TEXT.get(name)
    if about is None or None in words:
        return words
    form = _FORMS.get(name) or text_tools()[name]
    known = [word or "" for word in words]
    found: list[str] = []
    operands: list[str] = []
    given: set[str] = set()
    at = 0
    while at < len(known):
        word = known[at]
        if word == "--" or (form.first and not word.startswith("-")):
            operands += known[at + (word == "--") :]
            break
        if not word.startswith("-") or word == "-":
            operands.append(word)
            at += 1
            continue
        options: list[tuple[str, str | None]] = []
        taken = take_option(known, at, form, options)
        if taken == 0:
            return words
        given.update(option for option, _ in options)
        for option, value in options:
            # with POSIXLY_CORRECT, an option behind an operand is a file, and so is the word behind it
            is_text = option in about.values and (taken == 1 or not operands)
            if value is not None and not is_text:
                found.append(value)
        at += taken
    leading = 0 if about.instead & given else about.operands
    return (*found, *operands[leading:])
