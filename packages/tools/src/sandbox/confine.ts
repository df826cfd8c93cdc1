/**
 * The last step before a command, when all mounts are made: no capabilities, no way to gain any, a session keyring of
 * its own, a system call filter (system-calls.ts), and Landlock rules for writing. A process has to ask the kernel for
 * the last three itself, so a program of the host does: perl (1.3 ms), else python3 (13 ms), else setpriv of util-linux
 * 2.40, which can only load the filter.
 */
import type { Network } from "@heddle/protocol";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { findHostTool } from "./host-tools.ts";
import type { Layout } from "./layout.ts";
import { assembleFilter } from "./system-call-filter.ts";
import { roomRules, RULES, type Machine } from "./system-calls.ts";

export type SystemCalls = "filtered" | "open";

export interface Confiner {
  readonly kind: "perl" | "python3" | "setpriv" | "none";
  /** Of perl and python3. */
  readonly program: string;
  readonly systemCalls: SystemCalls;
}

export interface Confinement {
  /** Where files may be written; see `Layout.writable`. */
  readonly writable: Layout["writable"];
  /** With the host's network its abstract sockets are reachable, unless Landlock forbids it (Linux 6.12). */
  readonly network: Network;
  /** Reads that leave no trace are refused. */
  readonly isRoom?: boolean;
  /** What perl does for the first process of a pid namespace; for the others a shell does it (holder-script.ts). */
  readonly first?: FirstProcess;
}

export interface FirstProcess {
  /** Of its namespace. */
  readonly maxPid: number | undefined;
  readonly mountsProc: boolean;
}

/** Name of the filter in the sandbox's /dev, for setpriv. */
export const FILTER_NAME = "heddle-filter";

const NO_PRIVILEGES = ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"];

let filter: Buffer | undefined;
let roomFilter: Buffer | undefined;

export function systemCallFilter(isRoom = false): Buffer {
  const arch = machine() ?? "x64";
  if (isRoom) return (roomFilter ??= assembleFilter(arch, roomRules()));
  return (filter ??= assembleFilter(arch, RULES));
}

/** prctl, capset, openat, keyctl, seccomp. */
const NUMBERS: Readonly<Record<Machine, readonly number[]>> = {
  x64: [157, 126, 257, 250, 317],
  arm64: [167, 91, 56, 219, 277],
};

const MOUNT: Readonly<Record<Machine, number>> = { x64: 165, arm64: 40 };

/** undefined: neither the filter nor the numbers above are written for it. */
export function machine(): Machine | undefined {
  const { arch } = process;
  return arch === "x64" || arch === "arm64" ? arch : undefined;
}

export function canFilter(): boolean {
  return machine() !== undefined && existsSync("/proc/sys/kernel/seccomp/actions_avail");
}

export function findConfiner(): Confiner {
  const systemCalls = canFilter() ? "filtered" : "open";
  for (const kind of ["perl", "python3"] as const) {
    const program = machine() === undefined ? undefined : findHostTool(kind);
    if (program !== undefined) return { kind, program, systemCalls };
  }
  if (canFilter() && setprivLoadsFilters()) return { kind: "setpriv", program: "", systemCalls };
  return { kind: "none", program: "", systemCalls: "open" };
}

let isSetprivNew: boolean | undefined;

function setprivLoadsFilters(): boolean {
  const setpriv = findHostTool("setpriv");
  if (setpriv === undefined) return false;
  try {
    isSetprivNew ??= execFileSync(setpriv, ["--help"], { env: {}, encoding: "utf8" }).includes("--seccomp-filter");
  } catch {
    isSetprivNew = false;
  }
  return isSetprivNew;
}

/** The program and arguments to put before a command that still has capabilities. */
export function confine(confiner: Confiner, setpriv: string, confinement: Confinement): readonly string[] {
  const command = loaderCommand(confiner, confinement);
  if (command.length > 0) return command;
  const load = confiner.kind === "setpriv" ? [`--seccomp-filter=/dev/${FILTER_NAME}`] : [];
  return [setpriv, ...NO_PRIVILEGES, ...load, "--"];
}

/** Empty where neither perl nor python3 can be used. */
export function loaderCommand({ kind, program, systemCalls }: Confiner, confinement: Confinement): readonly string[] {
  const arch = machine();
  if ((kind !== "perl" && kind !== "python3") || arch === undefined) return [];
  const { first } = confinement;
  const mount = first?.mountsProc === true ? String(MOUNT[arch]) : "-";
  const script =
    kind === "perl"
      ? ["-f", "-e", PERL_SCRIPT, String(first?.maxPid ?? "-"), mount]
      : ["-I", "-S", "-c", PYTHON_SCRIPT];
  const code = systemCalls === "filtered" ? systemCallFilter(confinement.isRoom).toString("hex") : "";
  const scoped = confinement.network === "all" ? "1" : "0";
  // The sandbox's /dev holds only what the sandbox put there, mounted read-only.
  const paths = [...new Set([...confinement.writable, "/dev"])];
  return [program, ...script, ...NUMBERS[arch].map(String), code, scoped, String(paths.length), ...paths];
}

/** A command that prints the Landlock version of the kernel, 0 or less for none; undefined where no program can ask. */
export function landlockQuestion({ kind, program }: Confiner): readonly string[] | undefined {
  if (kind === "perl") return [program, "-e", "print syscall(444, 0, 0, 1)"];
  const ask = "import ctypes; print(ctypes.CDLL(None).syscall(444, None, ctypes.c_long(0), 1), end='')";
  return kind === "python3" ? [program, "-I", "-S", "-c", ask] : undefined;
}

/** Older versions refuse every move between folders. */
export const FIRST_USED_LANDLOCK = 2;

/**
 * Arguments of both scripts: five system call numbers, the filter in hex, the Landlock scope, the number of writable
 * paths, those paths, the command (without one it is a trial). The filter is loaded without the mitigations against
 * speculation that older kernels would add: they slow every build down. stdout and stderr, which may be named pipes,
 * can be opened again as /dev/stdout. A missing path needs no rule. When a step fails that this kernel supports, the
 * command is not run. Before them perl takes the largest pid and the number of `mount`, `-` for neither: it prepares a
 * pid namespace as READ_ONLY_PROC_SCRIPT does, without two more programs.
 */
const PERL_SCRIPT = `
my ($max_pid, $mount) = splice @ARGV, 0, 2;
my ($prctl, $capset, $openat, $keyctl, $seccomp, $filter, $scoped, $count) = splice @ARGV, 0, 8;
my @paths = splice @ARGV, 0, $count;
sub refuse { print STDERR "heddle: cannot $_[0]: $!\\n"; exit 125 }
sub call { my $number = shift; return syscall($number + 0, @_) }
sub put { if (open(my $file, ">", $_[0])) { print $file $_[1]; close $file } }
put("/proc/sys/kernel/pid_max", $max_pid) if $max_pid ne "-";
if ($mount ne "-") {
  put("/proc/self/oom_score_adj", 500);
  my ($source, $target, $type) = ("proc", "/proc", "proc");
  call($mount, $source, $target, $type, 1 | 2 | 4 | 8, 0) == 0 or refuse("mount /proc");
}
for (my $cap = 0; (my $held = call($prctl, 23, $cap, 0, 0, 0)) >= 0; $cap++) {
  next if $held == 0;
  call($prctl, 24, $cap, 0, 0, 0) == 0 or refuse("drop a capability");
}
call($prctl, 47, 4, 0, 0, 0) == 0 or refuse("drop ambient capabilities");
my ($head, $none) = (pack("LL", 0x20080522, 0), pack("L6", 0, 0, 0, 0, 0, 0));
call($capset, $head, $none) == 0 or refuse("drop all capabilities");
call($prctl, 38, 1, 0, 0, 0) == 0 or refuse("keep privileges from being gained");
call($keyctl, 1, 0, 0, 0, 0);
my $version = call(444, 0, 0, 1);
if ($version >= ${FIRST_USED_LANDLOCK}) {
  my ($write, $refer) = (2, 0x2000);
  my $attributes = pack("QQQ", $write | $refer, 0, $version >= 6 ? $scoped : 0);
  my $rules = call(444, $attributes, length($attributes), 0);
  $rules >= 0 or refuse("make rules for writing");
  my $allow = sub { my $rule = pack("Ql", $_[1], $_[0]); return call(445, $rules, 1, $rule, 0) };
  for my $path ("/", @paths) {
    my $name = $path;
    my $fd = call($openat, -100, $name, 0x280000, 0);
    next if $fd < 0 && $! == 2;
    $fd >= 0 && $allow->($fd, $path eq "/" ? $refer : $write) == 0 or refuse("allow writing below $path");
  }
  $allow->($_, $write) for 1, 2;
  call(446, $rules, 0) == 0 or refuse("restrict writing");
}
if ($filter ne "") {
  my $code = pack("H*", $filter);
  my $program = pack("Sx6P", length($code) / 8, $code);
  call($seccomp, 1, 4, $program) == 0 or refuse("load the system call filter");
}
exit 0 if @ARGV == 0;
exec { $ARGV[0] } @ARGV;
refuse("start $ARGV[0]");
`;

const PYTHON_SCRIPT = `
import _signal, ctypes, os, struct, sys
# What Python sets for itself is not for the command.
for number in _signal.SIGPIPE, _signal.SIGXFSZ:
    _signal.signal(number, _signal.SIG_DFL)
os.environ.pop("LC_CTYPE", None)
prctl, capset, openat, keyctl, seccomp = map(int, sys.argv[1:6])
code, scoped, count = bytes.fromhex(sys.argv[6]), int(sys.argv[7]), int(sys.argv[8])
paths, command = sys.argv[9:9 + count], sys.argv[9 + count:]
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(*words):
    return libc.syscall(*(word if isinstance(word, bytes) or word is None else ctypes.c_long(word) for word in words))
def refuse(what):
    sys.stderr.write("heddle: cannot %s: %s\\n" % (what, os.strerror(ctypes.get_errno())))
    sys.stderr.flush()
    os._exit(125)
cap = 0
while True:
    held = call(prctl, 23, cap, 0, 0, 0)
    if held < 0:
        break
    if held and call(prctl, 24, cap, 0, 0, 0) != 0:
        refuse("drop a capability")
    cap += 1
if call(prctl, 47, 4, 0, 0, 0) != 0:
    refuse("drop ambient capabilities")
if call(capset, struct.pack("II", 0x20080522, 0), struct.pack("6I", 0, 0, 0, 0, 0, 0)) != 0:
    refuse("drop all capabilities")
if call(prctl, 38, 1, 0, 0, 0) != 0:
    refuse("keep privileges from being gained")
call(keyctl, 1, 0, 0, 0, 0)
version = call(444, 0, 0, 1)
if version >= ${FIRST_USED_LANDLOCK}:
    write, refer = 2, 0x2000
    attributes = struct.pack("QQQ", write | refer, 0, scoped if version >= 6 else 0)
    rules = call(444, attributes, len(attributes), 0)
    if rules < 0:
        refuse("make rules for writing")
    def allow(fd, rights):
        return call(445, rules, 1, struct.pack("=Qi", rights, fd), 0)
    for path in ["/"] + paths:
        fd = call(openat, -100, os.fsencode(path), 0x280000, 0)
        if fd < 0 and ctypes.get_errno() == 2:
            continue
        if fd < 0 or allow(fd, refer if path == "/" else write) != 0:
            refuse("allow writing below " + path)
    for fd in 1, 2:
        allow(fd, write)
    if call(446, rules, 0) != 0:
        refuse("restrict writing")
if code:
    held = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(held))
    if call(seccomp, 1, 4, program) != 0:
        refuse("load the system call filter")
if not command:
    os._exit(0)
try:
    os.execvp(command[0], command)
except OSError as error:
    ctypes.set_errno(error.errno)
    refuse("start " + command[0])
`;
