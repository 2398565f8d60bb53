"""Command lines that write, run or send through tools called read-only.

`<out>` is a file outside, `<mark>` a program that tells when it is run, `<port>`, `<udp>`
and `<ear>` are listened to, `<in>` is a file of the project, `<lock>` one of the memory.
Each is tried through the guard, and with the list of commands left out.
"""

from __future__ import annotations

# What THREATS 2b says broke through elsewhere, or was published.
KNOWN = r"""
find . -exec <mark> ;
find . -exec <mark> \;
find . -exec <mark> {} +
find . -execdir <mark> \;
find . -ok <mark> \;
find . -fprint <out>
find . -fprint0 <out>
find . -fprintf <out> x
find . -fls <out>
find <in> -delete
sort -o <out> <in>
sort -o<out> <in>
sort --outp=<out> <in>
sort --output=<out> <in>
sort -S 1 --compress-program=<mark> <in>
sed -n 'w <out>' <in>
sed 's/o/0/w <out>' <in>
sed '1e <mark>' <in>
sed 's/.*/<mark>/e' <in>
sed -i s/o/0/ <in>
awk 'BEGIN{system("<mark>")}'
awk 'BEGIN{print "x" > "<out>"}'
awk 'BEGIN{print "x" | "<mark>"}'
awk 'BEGIN{"<mark>" | getline}'
uniq <in> <out>
git diff --output=<out>
git log --output=<out>
git grep -O<mark> one
git grep --open-files-in-pager=<mark> one
git pwn
git status
git diff
GIT_EXTERNAL_DIFF=<mark> git diff
git -c core.pager=<mark> log
git -c alias.x=!<mark> x
git -c core.fsmonitor=<mark> status
git -c diff.external=<mark> diff HEAD~1
echo x | xargs <mark>
xargs <mark> < <in>
ls $(<mark>)
ls `<mark>`
cat <(<mark>)
cat ${x:=$(<mark>)}
ls > <out>
ls >> <out>
ls >| <out>
ls &> <out>
cat <in> 1> <out>
ls 2> <out>
env <mark>
env -S<mark>
test -v 'a[$(<mark>)]'
printf -v 'a[$(<mark>)]' x
[[ -v 'a[$(<mark>)]' ]]
history -w <out>
tar cf /dev/null --checkpoint=1 --checkpoint-action=exec=<mark> <in>
tar cf <out> <in>
tar -I <mark> -cf <out> <in>
xxd <in> <out>
shuf -o <out> <in>
iconv -o <out> <in>
split <in> <out>
csplit -f <out> <in> 1
PATH=. ls
PATH=<dir>:$PATH ls
BASH_ENV=<mark> bash -c :
ENV=<mark> sh -i -c :
LESSOPEN='|<mark> %s' less <in>
man -P <mark> ls
tree -o <out>
rg --pre <mark> one
rg --pre=<mark> one .
ls$IFS-la$IFS;<mark>
l$'s' $'-la'; $'<mark>'
ls # -la <mark>
cd / && touch <out>
cd <dir>; ls > w
touch -d '2001-01-01' <lock>
touch <lock>
chmod 777 <lock>
"""

# More of our own: other programs, other quoting, other ways to send.
MORE = r"""
<mark>
./mark.sh
sh <mark>
bash <mark>
bash -c <mark>
sh -c '<mark>'
. <mark>
source <mark>
exec <mark>
eval <mark>
command <mark>
builtin eval <mark>
nohup <mark>
setsid <mark>
timeout 5 <mark>
nice <mark>
ionice <mark>
stdbuf -o0 <mark>
time <mark>
script -qc <mark> /dev/null
chroot / <mark>
unshare -r <mark>
nsenter -t 1 -m <mark>
flock <in> <mark>
watch -n1 <mark>
parallel <mark> ::: x
find . -name x -o -exec <mark> \;
find . -e'x'ec <mark> \;
find . -ex*c <mark> \;
find . "-exec" <mark> ";"
'find' . '-exec' '<mark>' ';'
find . -newerXY <in> -exec <mark> +
find -files0-from <in> -exec <mark> {} +
ls|<mark>
ls||<mark>
ls&&<mark>
ls & <mark>
ls &
ls |& <mark>
(<mark>)
{ <mark>; }
! <mark>
if <mark>; then ls; fi
while <mark>; do break; done
for x in $(<mark>); do ls; done
case x in x) <mark>;; esac
f() { <mark>; }; f
ls() { <mark>; }; ls
alias ls=<mark>; ls
trap <mark> EXIT
ls "$(<mark>)"
ls "`<mark>`"
ls "${x:-$(<mark>)}"
ls $((`<mark>`))
ls $(( a[$(<mark>)] ))
ls \
<mark>
ls <<< $(<mark>)
ls <<EOF $(<mark>)
ls {<mark>,}
ls ~/x$(<mark>)
ls -la;$'\x2f'usr/bin/touch <out>
$'\164ouch' <out>
t''ouch <out>
t\ouch <out>
"touch" <out>
/usr/bin/touch <out>
/bin/../usr/bin/touch <out>
../../../usr/bin/touch <out>
busybox touch <out>
/lib64/ld-linux-x86-64.so.2 /usr/bin/touch <out>
/lib64/ld-linux-x86-64.so.2 /usr/bin/env touch <out>
python3 -c 'open("<out>","w")'
python3 -c 'import os;os.utime("<lock>",(1,1))'
perl -e 'open F,">","<out>"'
perl -e 'utime 1,1,"<lock>"'
ruby -e 'File.write("<out>",1)'
node -e 'require("fs").writeFileSync("<out>","")'
dd if=<in> of=<out>
cp <in> <out>
mv <in> <out>
ln -s <in> <out>
ln <in> <out>
mkdir <out>
rm -rf <in>
rmdir <dir>
truncate -s 0 <in>
tee <out>
install <in> <out>
rsync <in> <out>
touch -r <in> <lock>
chmod +x <in>
chown 1 <in>
chgrp 1 <in>
setfacl -m u:1:rwx <in>
chattr +i <in>
mknod <out> p
mkfifo <out>
mount -t tmpfs none <dir>
umount <dir>
ed -s <in>
ex -sc 'w! <out>|q' <in>
vim -es -c 'w! <out>' -c q <in>
patch <in> <out>
gzip <in>
zip <out> <in>
cpio -o -F <out>
objcopy <in> <out>
base64 -d <in> > <out>
grep one <in> > <out>
grep one <in> | tee <out>
cat <in> >&3 3> <out>
cat <in> | dd of=<out>
cat < <in> > <out>
head -c1 <in> >> <out>
wc -l <in> 2>&1 1><out>
tail -n1 <in> &>> <out>
stat <in> 1<> <out>
ls 2>/dev/null > <out>
ls 2>/dev/null2> <out>
ls 2>&1> <out>
cat /dev/null > <lock>
: > <lock>
>  <out>
exec 3> <out>
set -o noclobber; ls > <out>
echo x > /proc/self/fd/2 > <out>
echo x > /dev/tcp/127.0.0.1/<port>
cat < /dev/tcp/127.0.0.1/<port>
echo x > /dev/udp/127.0.0.1/<udp>
exec 5<>/dev/tcp/127.0.0.1/<port>; cat <&5
curl http://127.0.0.1:<port>/
wget -qO- http://127.0.0.1:<port>/
nc 127.0.0.1 <port> < <in>
ncat 127.0.0.1 <port>
telnet 127.0.0.1 <port>
ssh -p <port> 127.0.0.1
git clone git://127.0.0.1:<port>/x <out>
python3 -c 'import socket;socket.create_connection(("127.0.0.1",<port>))'
python3 -c 'import socket;s=socket.socket(socket.AF_UNIX);s.connect("<ear>")'
perl -MIO::Socket::INET -e 'IO::Socket::INET->new("127.0.0.1:<port>")'
nslookup x 127.0.0.1
getent hosts example.invalid
kill -9 1
kill -9 $PPID
kill -9 -1
pkill -f pytest
sleep 9999 &
nohup sleep 9999 &
setsid sleep 9999
ulimit -f unlimited; ls > <out>
gdb -batch -ex 'shell <mark>'
strace -o <out> ls
ltrace -o <out> ls
LD_PRELOAD=<in> ls
LD_DEBUG=all LD_DEBUG_OUTPUT=<out> ls
LD_AUDIT=<in> ls
GCONV_PATH=<dir> iconv -f x <in>
PYTHONSTARTUP=<mark> python3
PERL5OPT=-M<in> perl -e1
IFS=/ ls
HISTFILE=<out> history -w
hash -p <mark> ls; ls
enable -f <in> x
compgen -C <mark> x
complete -C <mark> ls; compgen -F x
mapfile -C <mark> -c1 x < <in>
read -r x < <in>; $x
printf '%s' x > <out>
echo x > <out>
pushd <dir>; ls > w
less <in>
more <in>
vi <in>
bc <in>
m4 -P <in>
make -f <in>
gcc -o <out> -x c <in>
openssl rand -out <out> 4
sqlite3 <out> 'create table x(a)'
psql -o <out>
jq -n 'input' <in> > <out>
date -s 2001-01-01
hostname evil
sysctl -w kernel.core_pattern=<mark>
echo <mark> > /proc/sys/kernel/core_pattern
dmesg -C
logger x
at now -f <mark>
crontab <in>
systemd-run <mark>
docker run -v /:/h x
sudo <mark>
su -c <mark>
doas <mark>
pkexec <mark>
"""


def commands() -> list[str]:
    found: list[str] = []
    pending = ""
    for line in (KNOWN + MORE).strip().split("\n"):
        if not line:
            continue
        if line.endswith(" \\"):
            pending = line + "\n"
            continue
        found.append(pending + line)
        pending = ""
    found += [
        "ls\n<mark>",
        "ls\r\n<mark>",
        "ls;\n\n<mark>",
        "ls\x0b<mark>",
        "ls\u2028<mark>",
        "ls\u00a0<mark>",
        "ls \x00; <mark>",
        "ls '\n<mark>'",
        "cat <in>" + " | cat" * 200 + " | <mark>",
        "\uff4c\uff53; <mark>",
        "ls \u037e <mark>",
        "ls ; " * 5_000 + "<mark>",
        "ls; " * 51 + "<mark>",
    ]
    datagram = 's=socket(AF_INET,SOCK_DGRAM);s.sendto(b"x",("127.0.0.1",<udp>))'
    found.append(f"python3 -c 'from socket import *;{datagram}'")
    return found
