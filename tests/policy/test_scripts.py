"""Scripts of sed, awk and jq that could write, run, open or hide something are recognised."""

from tests.rows import each_row
from whisper_tui.policy.commands.awk_sed_jq import awk_has_effects, jq_reaches_further, sed_has_effects


@each_row(
    "script",
    [
        '/"/{system("touch x")} /"/',
        '# "\nBEGIN{system("touch x")} # "',
        'BEGIN{print /}/ > "x"}',
        'BEGIN{print "x",\n"y" > "x"}',
        'BEGIN{print "x",# \n\n"y" > "x"}',
        '/a//"/{print /"/(1)>"x"}',
        'BEGIN{print "x" > "y"}',
        'BEGIN{print("x")>"y"}',
        'BEGIN{printf "x" >> "y"}',
        'BEGIN{print "x" | "sh"}',
        '{"id" | getline x}',
        'BEGIN{while ((getline l < "x") > 0) print l}',
        "BEGIN{system (1)}",
        'BEGIN{for (i = 0; i < 1; print "x" > "y") i++}',
        'BEGIN{ARGV[1]="/x";ARGC=2}1',
        "BEGIN{print ENVIRON[1]}",
        '@include "x"',
        '@load "x"',
        'BEGIN{f="system"; @f("x")}',
        'BEGIN{close("x")}',
        '{ if (x) /"/ ; system(1) ; /"/ }',
        '{ if (x)\n/"/ ; system(1) ; /"/ }',
        '/[/]"/ { system("x") } /"/',
        '/[]/]"/ { system("x") } /"/',
        'length /"/ ; system(1) ; /"/',
        'BEGIN{x++ /"/ y; system(1); /"/}',
        'BEGIN{unknown("x")}',
        "BEGIN{print a\\\n> b}",
        "é",
        'BEGIN{PROCINFO["x"]}',
    ],
)
def test_an_awk_program_that_acts_or_is_read_differently_by_different_awks(script: str) -> None:
    assert awk_has_effects(script)


@each_row(
    "script",
    [
        "{print $1}",
        "{s+=$1; n++} END {print s/n}",
        "$1 ~ /pattern/ {print}",
        '$3 > 100 && $2 != "x" { print $1, $NF }',
        "NR>=10 && NR<=20",
        '{ if ($1 > 5) print (a > b); else print "no > here | there" }',
        '/"/ {print}',
        '# only a comment: system("x")\n{print}',
        'BEGIN{FS=":"} {a[$1]++} END{for (k in a) printf "%s %d\\n", k, a[k]}',
        '{gsub(/["\']/, ""); print toupper(substr($0, 1, 3)) }',
        "function f(x) { return x / 2 } { print f($1) }",
        "!seen[$0]++",
        "/[[:space:]]+x/,/end/",
        "{print ($1)/2}",
    ],
)
def test_an_awk_program_that_only_prints(script: str) -> None:
    assert not awk_has_effects(script)


@each_row(
    "script",
    [
        ":/a/a e touch x",
        ":/a/a w x",
        "p;:/a/a r /root/.bashrc",
        "b/a/a w x",
        "t/a/a w x",
        ":a\\;w x",
        "e",
        "1e ls",
        "w x",
        "W x",
        "r x",
        "R x",
        "s/a/b/e",
        "s/a/b/w x",
        "s/a/b/gew",
        "s/[/]/w x/",
        "s,a,b,\nw x",
        "y/a/b/;w x",
        "a foo\nw x",
        "/x/ w y",
        "1,2!w y",
        "\\,x,w y",
        "{p;w x\n}",
        "v",
        "p;;;e",
        ":a;s/x/\\\nw out/",
        "s/a/b",
        "#x\nw y",
    ],
)
def test_a_sed_script_that_acts_or_cannot_be_read_with_certainty(script: str) -> None:
    assert sed_has_effects(script)


@each_row(
    "script",
    [
        "s/a/b/",
        "s/a/b/gI2p",
        "s|/usr|/opt|g",
        "1,20p",
        "$p",
        "/needle/p",
        "/a/,/b/{s/x/y/;p}",
        "10q",
        ":a;N;$!ba;s/\\n/ /g",
        "y/abc/xyz/",
        "2i\\  text",
        "$a the end",
        "/x/!d",
        "0~3d",
        "1,+3p;5,~4d",
        "s/[^,]*,//;s/ *$//",
        "# a comment\np",
        "/^$/d;=",
        "n;d",
    ],
)
def test_a_sed_script_that_only_changes_what_is_printed(script: str) -> None:
    assert not sed_has_effects(script)


@each_row(
    "script",
    [
        'import "config" as $d {search:"~/.docker"}; $d',
        'include "x"; .',
        "env",
        "env.HOME",
        "$ENV",
        "$ENV.HOME",
        "$__loc__",
        "{env}",
        "{a: env}",
        "{(env|tostring): 1}",
        "[env]",
        '"\\(env)"',
        '@base64 "\\(env)"',
        "input_filename",
        "input",
        "inputs",
        "modulemeta",
        "get_search_list",
        "m::f",
        "env::x",
        "debug",
        "def f: env; f",
        "# x",
        '.a."b\\(env)"',
        "getpath([env])",
        "{env:env}",
        "{a:1}|env",
        "splits(env)",
    ],
)
def test_a_jq_filter_that_could_show_more_than_its_input(script: str) -> None:
    assert jq_reaches_further(script)


@each_row(
    "script",
    [
        ".",
        ".a.b[0].c",
        '.[] | select(.name == "x") | {name, id: .id}',
        "keys | length",
        '.["a b"]?',
        'to_entries | map("x" + .key) | join(",")',
        ".scripts | keys[]",
        "[.[] | .n] | add / length",
        ".a // empty",
        "if .a then 1 else 2 end",
        ".[1:3] | @csv",
        "sort_by(.x) | reverse | .[0]",
    ],
)
def test_a_jq_filter_that_only_sees_its_input(script: str) -> None:
    assert not jq_reaches_further(script)
