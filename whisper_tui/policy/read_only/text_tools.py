"""Programs that read files and text: the options that only change what they show."""

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
grep egrep fgrep | EFGPivwxcLloqsHhnTZzabrIUyA:B:C:D:d:e:f:m: | extended-regexp fixed-strings basic-regexp perl-regexp
    ignore-case no-ignore-case invert-match word-regexp line-regexp count files-without-match files-with-matches
    only-matching quiet silent no-messages byte-offset with-filename no-filename line-number initial-tab null null-data
    text recursive line-buffered binary color? colour? regexp= file= max-count= after-context=
    before-context= context= binary-files= devices= directories= exclude= exclude-from= exclude-dir= include= label=
    | numbers
rg | abcFhHiIlnNoPpqsSuUvVwx0.A:B:C:E:e:f:g:j:M:m:r:t:T:d: | after-context= before-context= context= color= colors=
    column no-column count count-matches case-sensitive ignore-case smart-case files files-with-matches
    files-without-match fixed-strings no-follow glob= iglob= heading no-heading hidden no-hidden json line-number
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
xxd | abceEipuhvc:g:l:n:o:s: | | most=1
strings | afowse:n:t: | all print-file-name bytes= radix= encoding= target= data | numbers
md5sum sha1sum sha224sum sha256sum sha384sum sha512sum | btz | binary text tag zero
b2sum | btzl: | binary text tag zero length=
shasum | bt0a: | algorithm= binary text
md5 | pqrtxs:
cksum | a:l: | algorithm= length= untagged tag zero raw base64 debug
sum | rs | sysv
base64 base32 | diw: | decode ignore-garbage wrap=
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
bat | AnpfHr:l: | plain number show-all language= line-range= highlight-line= style= color= theme= decorations=
    list-languages list-themes
exa eza | 1laTRFGhHiSmuUrsdDL:I:t: | long grid across recurse tree classify all list-dirs only-dirs level= reverse sort=
    group-directories-first header icons color=
lsd | 1laARtFhSr | long all tree recursive depth= classic human-readable reverse sort= group-dirs= total-size header
    color= icon=
tokei | fsC | files hidden sort= type= exclude= output=
zcat gzcat | fq
zipinfo | 12hlmstvzMTZCx
unzip | lqvZ | | needs=lvZ
nm | aAgnprsuvDCP | demangle? dynamic extern-only undefined-only defined-only size-sort numeric-sort print-size
objdump | adDfhprtTxgGCwj:M:b:m: | disassemble all-headers file-headers section-headers syms dynamic-syms demangle?
    section= no-show-raw-insn
readelf | aehlStgsdnruVAIcWDx:p:w | all file-header program-headers sections symbols dynamic notes relocs wide
size | ABdox | format= radix= total
look | abdft:
iconv | f:t:clsV | from-code= to-code= list silent
numfmt | d:z | from= to= suffix= padding= field= format= grouping header? invalid= round= delimiter= debug
sort | bcCdfghiMmnRrsuVzk:t: | ignore-leading-blanks dictionary-order ignore-case general-numeric-sort
    ignore-nonprinting month-sort human-numeric-sort numeric-sort random-sort random-source= reverse sort= version-sort
    check? debug key= merge stable field-separator= parallel= unique zero-terminated
"""
