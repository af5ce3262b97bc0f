"""Programs that tell about the machine, its processes and its packages: the options that only change what they tell."""

MACHINE = """
pwd | LP | logical physical
cd | LPe
true false : whoami logname groups users lsmod sleep times expr printf
arch | | | most=0
tty | s | silent quiet
nproc | | all ignore=
hostname | afidIsAy | alias fqdn long ip-address all-ip-addresses all-fqdns short domain | most=0
uname | asnrvmpio | all kernel-name nodename kernel-release kernel-version machine processor hardware-platform
    operating-system
id | agGnruzZ | group groups name real user zero context
who | abdHlmpqrstTuw | all boot heading login count short users
w | hsfoipu
last | adFiwxn:f:s:t:p: | | numbers
uptime | ps | pretty since
date | Rud:r:I | utc universal date= reference= iso-8601? rfc-3339= rfc-email
cal ncal | 137mjnybSswMehA:B: | one three monday sunday julian year
which | as | all skip-alias skip-dot skip-tilde show-dot show-tilde tty-only
whereis | bmsluBMS
type | afptP
help | dms
locale | ackv | all-locales category-name keyword-name
getconf | av:
free | bkmghlotwvs:c: | bytes kilo mega giga tera human lohi line total wide seconds= count= si
vmstat | adfimnstwDS: | active stats disk slabs
lscpu | abceJpsxyB | all json parse? extended? online
lsblk | abdDfhiIJlmnOpPrsStTxze:o:I:M: | all bytes discard fs json list output= paths pairs perms topology nodeps tree?
lspci | bDkmnPtvx | mm
lsusb | tvs:d:
dmesg | kLTtuxwdeprl:f: | kernel ctime level= facility= decode color?
pgrep | acfilnovwxF:g:G:P:s:t:u:U:d:r: | count list-name list-full full inverse newest oldest exact delimiter= parent=
    euid= uid= ignore-case
pidof | csxzo: | single-shot
pstree | aAcghlnpsSTtuUZH: | arguments ascii show-pids show-parents long numeric-sort
lsof | abChKlnNOPRtUvVwXa:c:d:g:i:p:s:u:F:L:T:
ss | 46aeHilmnoOprstuwxZbEf: | numeric resolve all listening options extended memory processes info summary tcp udp raw
    unix ipv4 ipv6 no-header | most=0
netstat | 46acegilnNopMrstuvwxA: | all listening numeric programs route interfaces statistics tcp udp
ifconfig | as | | most=1
journalctl | aqxerfkmNlbu:t:p:n:o:g:S:U:D:c:F: | all full no-full lines= output= output-fields= utc no-hostname quiet merge
    boot? list-boots dmesg identifier= unit= user-unit= priority= facility= grep= case-sensitive? since= until= cursor=
    after-cursor= show-cursor reverse follow no-tail pager-end no-pager catalog fields header disk-usage user system
    directory= field= verify dump-catalog list-catalog
dpkg | lLsSpC | list listfiles status search print-avail audit get-selections print-architecture verify
dpkg-query | lLsSWpf: | list listfiles status search show showformat=
rpm | qaiflRcd | all info list requires provides whatprovides= whatrequires= changelog scripts queryformat= | needs=q
mount | l | | most=0
findmnt | aAbDeiJlnrRs | all df json list raw tree
nvidia-smi | Lq | query-gpu= format= list-gpus
sw_vers | | -productName -productVersion -buildVersion
ulimit | aHS | | most=0
umask | Sp | | most=0
jobs | lnprs | | most=0
dirs | clpv | | most=0
whatis apropos | rwle
hostnamectl timedatectl localectl loginctl | | | most=0
"""
