/**
 * The scripts of the namespaces back-end, in POSIX sh because every host has it. Paths arrive as arguments and are
 * always quoted. The holder carries out the plan it is given, reports that it is ready, and waits as the first process
 * of its pid namespace: when its input closes, everything inside ends. Until then each number on its input makes a
 * standby (standby.ts).
 */

/**
 * What the holder does when it is ready. `maps` and `pids` are what it has reported, for the script by which a standby
 * enters; descriptor 3 is the folder with the streams of standbys.
 */
const MAKE_STANDBYS = `
stand() {
  streams=/proc/self/fd/3/$1
  if [ -p "$streams.order" ] && [ -p "$streams.output" ] && [ -p "$streams.status" ] && [ -p "$streams.life" ]; then
    # In both directions, because to open one end waits for the other. Its first order waits for it: to say that it is there.
    exec 4<>"$streams.life" 5<>"$streams.status" 6<>"$streams.order" 7<>"$streams.output"
    printf '%s\\n' "printf 'standing $1\\\\n' >&8; exec 2>&1 4>&- 8>&-" >&6
    . /proc/self/fd/3/enter || printf 'gone %s\\n' "$1"
    exec 4<&- 5<&- 6<&- 7<&-
  else
    printf 'gone %s\\n' "$1"
  fi
  (cd /proc/self/fd/3 && next=$(($1 + 1)) && { [ -p "$next.life" ] || mkfifo -m 600 "$next.order" "$next.output" "$next.status" "$next.life"; })
}

# Orphans come to this process, which buries whatever ends while it waits. Another one reads, because a shell gives up
# reading when a child of its own ends.
(while read -r number; do stand "$number"; done)
`;

/** The same as a script of its own, after holder-perl.ts. */
export const STANDBY_LOOP = `set -u\nmaps=$1 pids=$2\n${MAKE_STANDBYS}`;

/**
 * Arguments: the private folder of the sandbox, `open` or `closed` for its network, `root` or `user`, and the program
 * that confines a command (confine.ts), which is tried before any command depends on it. `mount -c` leaves the look-up
 * of paths to the kernel, and the result is checked. The pid it prints is the host's, read while the host's /proc is
 * visible. Its plan is in the private folder when a line arrives on its input; until then it does what needs no plan.
 */
export const HOLDER_SCRIPT = `
set -u
PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin:/run/current-system/sw/bin
export PATH
unset ENV BASH_ENV
die() { printf '%s\\n' "$*" >&2; exit 1; }
read -r pid rest </proc/self/stat || die "cannot read /proc/self/stat"
scratch=$1
root=$scratch/root

loopback() {
  ip link set lo up 2>/dev/null && return 0
  ifconfig lo up 2>/dev/null && return 0
  busybox ip link set lo up 2>/dev/null && return 0
  perl -MSocket -e 'socket(my $s,AF_INET,SOCK_DGRAM,0) or exit 1; my $r=pack("a16s","lo",0x41); $r.="\\0"x(40-length $r); ioctl($s,0x8914,$r) or exit 1' 2>/dev/null && return 0
  python3 -c 'import fcntl,socket,struct; fcntl.ioctl(socket.socket(socket.AF_INET,socket.SOCK_DGRAM),0x8914,struct.pack("16sH22x",b"lo",0x41))' 2>/dev/null && return 0
  return 0
}

mount -n -c --rbind / "$root" || die "cannot bind the root folder"
printf 'alive\\n'
if [ "$2" = closed ]; then loopback </dev/null & fi
trial=
if [ "$#" -gt 3 ]; then
  (shift 3; exec "$@") </dev/null &
  trial=$!
fi
maps=no
if [ "$3" = user ]; then
  case $(unshare --help 2>/dev/null) in *--map-user=*--keep-caps*) maps=maps ;; *--keep-caps*--map-user=*) maps=maps ;; esac
fi
# One that is started again finds them.
first=../standbys/1
(cd "$scratch/pipes" 2>/dev/null && mkfifo -m 600 0 1 2 3 4 5 6 7 $first.order $first.output $first.status $first.life 2>/dev/null)
# Where a standby gets its streams; held open, because the new root does not show it.
exec 3<"$scratch/standbys" || die "cannot open the folder for standbys"
read -r plan max_pid room || exit 0
# What runs in here is ended before Heddle is when memory runs out.
echo 500 2>/dev/null >/proc/self/oom_score_adj
# Instances are counted for the whole user; one thread must not take those of everybody.
if read -r most 2>/dev/null </proc/sys/fs/inotify/max_user_instances; then
  echo $((most / 2)) 2>/dev/null >/proc/sys/user/max_inotify_instances
fi
pids=free
if [ "$max_pid" != - ] && echo "$max_pid" 2>/dev/null >/proc/sys/kernel/pid_max; then pids=held; fi
if [ "$plan" = apart ]; then mount -n --make-runbindable "$root" || die "cannot keep the new root apart"; fi
# The layers of a room are named relative to the folder they are linked in. A number: its upper layer is in memory, mounted in
# the new root, which no folder that is bound brings along, and taken away when the room holds it.
if [ "$room" != - ]; then
  cd "$scratch/layers" || die "cannot find the layers of the room"
  if [ "$room" != disk ]; then
    mount -n -c -t tmpfs -o "strictatime,nosuid,nodev,mode=0700,size=$room" heddle-upper "$root$scratch/layers/top" || die "cannot make the upper layer"
    exec 9<"$root$scratch/layers/top" && mkdir /proc/self/fd/9/upper /proc/self/fd/9/work || die "cannot make the upper layer"
  fi
fi
mount -n -c -a -T "$scratch/fstab" || die "cannot make the mounts"
case $room in
- | disk) ;;
*) umount -n -c -l /proc/self/fd/9/. && exec 9<&- || die "cannot hide the upper layer" ;;
esac
mount -n -c -t devpts -o newinstance,ptmxmode=0666,mode=0620,nosuid,noexec devpts "$root/dev/pts" 2>/dev/null
if [ "$plan" = apart ]; then mount -n --make-rprivate "$root" || die "cannot make the new root private"; fi
if [ -n "$trial" ]; then wait "$trial" || die "commands cannot be confined on this host"; fi
wait
cd "$root" && pivot_root . . && umount -c -l . && cd / || die "cannot enter the new root"
printf 'ready %s %s %s\\n' "$pid" "$maps" "$pids"

${MAKE_STANDBYS}`;

/** Sets the variables that no earlier program may see. Arguments: their number, the variables, the command. */
const SET_LATE = `
late=$1
shift
while [ "$late" -gt 0 ]; do
  export "$1"
  shift
  late=$((late - 1))
done
`;

/** The last program before a command that needs no waiting; `limits` are lines of the limiter. */
export function lateScript(limits: string): string {
  return `${SET_LATE}${limits}exec "$@"`;
}

/**
 * First process of a command's pid namespace, without capabilities. A shell in between, because the first process of a
 * namespace gets no signals it does not handle, and has to reap orphans. Its own errors are dropped: it would write
 * "Killed" into the output of a command that ends by a signal. Arguments: the working folder, whose links are followed
 * here, because a room has others than the host; the number of late variables, those variables, the command.
 */
export const INIT_SCRIPT = `
echo 500 2>/dev/null >/proc/self/oom_score_adj
cd -P -- "$1" || exit 126
shift
${SET_LATE}
exec 9>&2 2>/dev/null
(exec 2>&9 9>&-; exec "$@")
exit "$?"
`;

/** In the command's pid namespace, so that a command that forks without end leaves pids to the others. */
const SET_MAX_PID = `
if [ "$1" != - ]; then echo "$1" 2>/dev/null >/proc/sys/kernel/pid_max; fi
shift
`;

/** Arguments: the largest pid, what follows. */
export const MAX_PID_SCRIPT = `${SET_MAX_PID}exec "$@"`;

/** For root only: uid 0 of the host may write /proc/sys by its owner bits alone, so its /proc is read-only. */
export const READ_ONLY_PROC_SCRIPT = `${SET_MAX_PID}
mount=$1
shift
echo 500 2>/dev/null >/proc/self/oom_score_adj
"$mount" -n -t proc -o ro,nosuid,nodev,noexec proc /proc || exit 125
exec "$@"
`;
