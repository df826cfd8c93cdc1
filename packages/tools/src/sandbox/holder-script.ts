/**
 * The two small programs the namespaces back-end runs, in POSIX sh because nothing else is sure to be there. Every path
 * arrives as an argument and is only ever used quoted. The holder carries out a plan that was made outside, says that
 * it is ready, and waits as the first process of its pid namespace: when its input closes, everything inside is gone.
 */

/**
 * Arguments: the new root, then operations. It runs with all capabilities of its own user namespace and before any
 * command exists. The pid it prints is the host's, read while the host's /proc is still there.
 */
export const HOLDER_SCRIPT = `
set -u
PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin:/run/current-system/sw/bin
export PATH
unset ENV BASH_ENV
die() { printf '%s\\n' "$*" >&2; exit 1; }
read -r pid rest </proc/self/stat || die "cannot read /proc/self/stat"
root=$1
shift

place() {
  if [ -e "$2" ] || [ -h "$2" ]; then return 0; fi
  if [ -d "$1" ]; then mkdir -p "$2"; else mkdir -p "\${2%/*}" && : >"$2"; fi
}

device_folder() {
  mount -n -t tmpfs -o mode=0755,nosuid,size=64k tmpfs "$1" || return 1
  for name in null zero full random urandom tty; do
    [ -e "/dev/$name" ] || continue
    : >"$1/$name" && mount -n --bind "/dev/$name" "$1/$name" || return 1
  done
  mkdir "$1/shm" "$1/pts" || return 1
  mount -n -t tmpfs -o mode=1777,nosuid,nodev,size=1g tmpfs "$1/shm" || return 1
  if mount -n -t devpts -o newinstance,ptmxmode=0666,mode=0620,nosuid,noexec devpts "$1/pts" 2>/dev/null; then
    ln -s pts/ptmx "$1/ptmx"
  fi
  ln -s /proc/self/fd "$1/fd" && ln -s fd/0 "$1/stdin" && ln -s fd/1 "$1/stdout" && ln -s fd/2 "$1/stderr"
}

loopback() {
  ip link set lo up 2>/dev/null && return 0
  ifconfig lo up 2>/dev/null && return 0
  busybox ip link set lo up 2>/dev/null && return 0
  perl -MSocket -e 'socket(my $s,AF_INET,SOCK_DGRAM,0) or exit 1; my $r=pack("a16s","lo",0x41); $r.="\\0"x(40-length $r); ioctl($s,0x8914,$r) or exit 1' 2>/dev/null && return 0
  python3 -c 'import fcntl,socket,struct; fcntl.ioctl(socket.socket(socket.AF_INET,socket.SOCK_DGRAM),0x8914,struct.pack("16sH22x",b"lo",0x41))' 2>/dev/null && return 0
  return 0
}

mount -n --make-rprivate / || die "cannot make the mounts private"
mount -n --rbind / "$root" || die "cannot bind the root folder"
printf 'alive\\n'
while [ $# -gt 0 ]; do
  operation=$1
  shift
  case $operation in
    bind) place "$1" "$root$2"; mount -n --rbind "$1" "$root$2" || die "cannot bind $2"; shift 2 ;;
    flags) mount -n -o "remount,bind,$2" none "$root$1" || die "cannot set $2 on \${1:-/}"; shift 2 ;;
    empty) mount -n -t tmpfs -o mode=0755,nosuid,nodev,size=1m tmpfs "$root$1" || die "cannot cover $1"; shift ;;
    dev) device_folder "$root/dev" || die "cannot make /dev" ;;
    proc) mount -n -t proc -o nosuid,nodev,noexec proc "$root/proc" || die "cannot mount /proc" ;;
    unbindable) mount -n --make-runbindable "$root" || die "cannot keep the new root apart" ;;
    private) mount -n --make-rprivate "$root" || die "cannot make the new root private" ;;
    loopback) loopback ;;
    *) die "unknown operation $operation" ;;
  esac
done
cd "$root" && pivot_root . . && umount -l . && cd / || die "cannot enter the new root"
printf 'ready %s\\n' "$pid"
# Orphans come to this process; ignoring their end makes the kernel bury them.
trap '' CHLD
exec cat >/dev/null
`;

/**
 * First process of a command's own pid namespace, already without any capability. A shell in between, because the
 * first process of a namespace does not get signals it has no handler for, and has to bury orphans.
 * Its own errors go nowhere: it would write "Killed" into the output of a command that ends by a signal.
 * Arguments: the working folder, the number of late variables, those variables, the command.
 */
export const INIT_SCRIPT = `
cd -- "$1" || exit 126
late=$2
shift 2
while [ "$late" -gt 0 ]; do
  export "$1"
  shift
  late=$((late - 1))
done
exec 9>&2 2>/dev/null
(exec 2>&9 9>&-; exec "$@")
exit "$?"
`;

/** For root only: uid 0 of the host may write /proc/sys by its owner bits alone, so its /proc is read-only. */
export const READ_ONLY_PROC_SCRIPT = `
mount=$1
shift
"$mount" -n -t proc -o ro,nosuid,nodev,noexec proc /proc || exit 125
exec "$@"
`;
