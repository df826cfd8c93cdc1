/**
 * The holder where the host has perl (holder-script.ts is the other one, for hosts without): the same steps by system calls,
 * because a program started for each of them costs more than all of them do. When the sandbox is ready it becomes the
 * shell that makes standbys.
 */
import { STANDBY_LOOP } from "./holder-script.ts";
import type { Machine } from "./system-calls.ts";

/** mount, umount2, pivot_root, mknodat, openat, dup3. */
const NUMBERS: Readonly<Record<Machine, readonly number[]>> = {
  x64: [165, 166, 155, 259, 257, 292],
  arm64: [40, 39, 41, 33, 56, 24],
};

interface PerlHolder {
  readonly perl: string;
  readonly sh: string;
  readonly machine: Machine;
  readonly scratch: string;
  readonly network: "open" | "closed";
  readonly who: "root" | "user";
}

/** The words before those of a trial of what confines a command; there may be none. */
export function perlHolder({ perl, sh, machine, scratch, network, who }: PerlHolder): readonly string[] {
  return [perl, "-f", "-e", SCRIPT, scratch, network, who, sh, STANDBY_LOOP, ...NUMBERS[machine].map(String)];
}

/**
 * No modules: to load one costs as much as a program. Numbers are those of Linux for both machines; a string that is given
 * to a system call must be a variable. The plan is the fstab of mount-plan.ts, whose options are all flags of the kernel
 * or, for a new file system, its own. The first three descriptors are those of the shell it becomes, the fourth is the folder
 * with its standbys, and the layers of a room in memory are named by the tenth.
 */
const SCRIPT = `# heddle-holder
my ($scratch, $network, $who, $sh, $loop) = splice @ARGV, 0, 5;
my ($mount, $umount, $pivot, $mknodat, $openat, $dup) = map { $_ + 0 } splice @ARGV, 0, 6;
my $root = "$scratch/root";
my %flag = (
  ro => 1, nosuid => 2, nodev => 4, noexec => 8, remount => 32, nosymfollow => 256, noatime => 1024, nodiratime => 2048,
  bind => 4096, rbind => 4096 | 16384, unbindable => 1 << 17, private => 1 << 18, recursive => 16384,
  relatime => 1 << 21, strictatime => 1 << 24,
);
sub refuse { print STDERR "$_[0]: $!\\n"; exit 1 }
sub say_so { syswrite STDOUT, "$_[0]\\n" }
sub put { open(my $file, ">", $_[0]) or return 0; print $file $_[1]; return close $file }
sub fifo { my $path = "$scratch/$_[0]"; syscall $mknodat, -100, $path, 0010600, 0 }
sub hold {
  my ($path, $wanted) = @_;
  my $fd = syscall $openat, -100, $path, 0, 0;
  return 0 if $fd < 0;
  return 1 if $fd == $wanted;
  open(my $first, "<&=", $fd) or return 0;
  return syscall($dup, $fd, $wanted, 0) == $wanted;
}
sub mounted {
  my ($source, $target, $type, $options) = @_;
  my ($flags, @own) = 0;
  for my $option (split /,/, $options) {
    if (exists $flag{$option}) { $flags |= $flag{$option} } else { push @own, $option }
  }
  if (@own && $flags & ($flag{bind} | $flag{remount})) { $! = 22; return 0 }
  my $data = join ",", @own;
  return syscall($mount, $source, $target, $type, $flags, $data) == 0;
}

$ENV{PATH} = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin:/run/current-system/sw/bin";
open(my $stat, "<", "/proc/self/stat") or refuse("cannot read /proc/self/stat");
my ($pid) = split / /, <$stat>;
close $stat;
mounted("/", $root, "none", "rbind") or refuse("cannot bind the root folder");
say_so("alive");
my $trial;
if (@ARGV) {
  $trial = fork;
  defined $trial or refuse("cannot start a process");
  if ($trial == 0) {
    open STDIN, "<", "/dev/null";
    exec { $ARGV[0] } @ARGV;
    exit 125;
  }
}
if ($network eq "closed" && socket(my $socket, 2, 2, 0)) {
  my $up = pack("a16s", "lo", 0x41) . "\\0" x 22;
  ioctl($socket, 0x8914, $up);
}
my $maps = "no";
if ($who eq "user") {
  my $help = qx(unshare --help);
  $maps = "maps" if $help =~ /--map-user=/ && $help =~ /--keep-caps/;
}
for my $number (0 .. 7) { fifo("pipes/$number") }
for my $number (1, 2) { fifo("standbys/$number.$_") for "order", "output", "status", "life" }

hold("$scratch/standbys", 3) or refuse("cannot open the folder for standbys");
my ($line, $byte) = ("", "");
while (sysread(STDIN, $byte, 1) && $byte ne "\\n") { $line .= $byte }
exit 0 if $byte ne "\\n";
my ($plan, $max_pid, $room) = split / /, $line;
put("/proc/self/oom_score_adj", 500);
if (open(my $most, "<", "/proc/sys/fs/inotify/max_user_instances")) {
  put("/proc/sys/user/max_inotify_instances", int(<$most> / 2));
}
my $pids = $max_pid ne "-" && put("/proc/sys/kernel/pid_max", $max_pid) ? "held" : "free";
if ($plan eq "apart") { mounted("none", $root, "none", "unbindable,recursive") or refuse("cannot keep the new root apart") }
my $upper = $room ne "-" && $room ne "disk";
if ($room ne "-") { chdir "$scratch/layers" or refuse("cannot find the layers of the room") }
if ($upper) {
  my $top = "$root$scratch/layers/top";
  mounted("heddle-upper", $top, "tmpfs", "strictatime,nosuid,nodev,mode=0700,size=$room")
    && hold($top, 9) && mkdir("/proc/self/fd/9/upper") && mkdir("/proc/self/fd/9/work")
    or refuse("cannot make the upper layer");
}
open(my $table, "<", "$scratch/fstab") or refuse("cannot read the mounts");
while (my $entry = <$table>) {
  my ($source, $target, $type, $options) = map { s/\\\\([0-7]{3})/chr oct $1/ger } split / /, $entry;
  mounted($source, $target, $type, $options) or refuse("cannot make the mounts: $target");
}
close $table;
my $lazily = 2;
if ($upper) {
  my $top = "/proc/self/fd/9/.";
  syscall($umount, $top, $lazily) == 0 or refuse("cannot hide the upper layer");
  open(my $held, "<&=", 9) and close $held;
}
mounted("devpts", "$root/dev/pts", "devpts", "nosuid,noexec,newinstance,ptmxmode=0666,mode=0620");
if ($plan eq "apart") { mounted("none", $root, "none", "private,recursive") or refuse("cannot make the new root private") }
if (defined $trial) { waitpid $trial, 0; $? == 0 or refuse("commands cannot be confined on this host") }
my ($new, $old) = (".", ".");
chdir $root && syscall($pivot, $new, $old) == 0 && syscall($umount, $old, $lazily) == 0 && chdir "/"
  or refuse("cannot enter the new root");
say_so("ready $pid $maps $pids");
exec { $sh } "sh", "-c", $loop, "heddle-holder", $maps, $pids;
refuse("cannot start a shell");
`;
