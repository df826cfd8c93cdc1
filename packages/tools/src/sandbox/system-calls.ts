/**
 * Which system calls a sandboxed command may make. Commands have no capabilities, so this refuses what the kernel would
 * do for an unprivileged process and no build needs: other security domains (keys, handles, namespaces), rarely used
 * parts of the kernel, and what affects the whole machine. Everything an unprivileged container may do stays allowed.
 * Rules go by family where there is one; the rest is a list. Calls newer than this table do not exist for a command.
 */

export type Machine = "x64" | "arm64";

/** Of linux/audit.h: a call made in any other convention (32 bit) ends its process. */
export const AUDIT_ARCH: Readonly<Record<Machine, number>> = { x64: 0xc000003e, arm64: 0xc00000b7 };

/** The newest call this table knows (Linux 6.17). x32 has its numbers far above it. */
export const LAST_KNOWN = 469;

export const ERRNO = { EPERM: 1, ENOSYS: 38, EPROTONOSUPPORT: 93, EOPNOTSUPP: 95, EAFNOSUPPORT: 97 } as const;

/** Of linux/sched.h: new namespaces (mount, cgroup, uts, ipc, user, pid, net). */
const NEW_NAMESPACES = 0x7e020000;
/** Of linux/sched.h. For clone(2) the same bit belongs to a signal. */
const NEW_TIME_NAMESPACE = 0x80;

const AF = { UNIX: 1, INET: 2, INET6: 10, NETLINK: 16 } as const;
/** Automatic, ICMP, TCP, UDP, ICMPv6, MPTCP: what name servers, ping and HTTP use. */
const INTERNET_PROTOCOLS = [0, 1, 6, 17, 58, 262] as const;
const NETLINK_ROUTE = 0;

/** PER_LINUX32, UNAME26, ADDR_NO_RANDOMIZE: what setarch(1) and debuggers ask for. */
const PERSONALITY = 0x8 | 0x20000 | 0x40000;
const ASK_PERSONALITY = 0xffffffff;
/** They put characters into the input of a terminal. */
const TERMINAL_INPUT = [0x5412 /* TIOCSTI */, 0x541c /* TIOCLINUX */] as const;

/** Absent number: the machine does not have the call. */
export interface SystemCall {
  readonly name: string;
  readonly x64?: number;
  readonly arm64?: number;
}

/** A test of the low half of an argument; the kernel uses no more of these arguments. */
export type Test =
  | { readonly kind: "any-bit"; readonly argument: number; readonly bits: number }
  | { readonly kind: "one-of"; readonly argument: number; readonly values: readonly number[] };

/** The first matching case decides; without one the call is allowed. */
export interface Case {
  readonly when: readonly Test[];
  readonly answer: "allow" | { readonly errno: number };
}

export interface Rule {
  readonly call: SystemCall;
  readonly cases: readonly Case[];
}

const always = (errno: number): readonly Case[] => [{ when: [], answer: { errno } }];
const anyBit = (argument: number, bits: number): Test => ({ kind: "any-bit", argument, bits: bits >>> 0 });
const oneOf = (argument: number, values: readonly number[]): Test => ({ kind: "one-of", argument, values });
const same = (name: string, number: number): SystemCall => ({ name, x64: number, arm64: number });
const both = (name: string, x64: number, arm64: number): SystemCall => ({ name, x64, arm64 });

const FAMILIES: readonly Rule[] = [
  {
    call: both("socket", 41, 198),
    cases: [
      { when: [oneOf(0, [AF.UNIX])], answer: "allow" },
      { when: [oneOf(0, [AF.INET, AF.INET6]), oneOf(2, INTERNET_PROTOCOLS)], answer: "allow" },
      { when: [oneOf(0, [AF.NETLINK]), oneOf(2, [NETLINK_ROUTE])], answer: "allow" },
      { when: [oneOf(0, [AF.INET, AF.INET6, AF.NETLINK])], answer: { errno: ERRNO.EPROTONOSUPPORT } },
      ...always(ERRNO.EAFNOSUPPORT),
    ],
  },
  {
    call: both("socketpair", 53, 199),
    cases: [{ when: [oneOf(0, [AF.UNIX])], answer: "allow" }, ...always(ERRNO.EAFNOSUPPORT)],
  },
  {
    call: both("clone", 56, 220),
    cases: [{ when: [anyBit(0, NEW_NAMESPACES)], answer: { errno: ERRNO.EPERM } }],
  },
  {
    call: both("unshare", 272, 97),
    cases: [{ when: [anyBit(0, NEW_NAMESPACES | NEW_TIME_NAMESPACE)], answer: { errno: ERRNO.EPERM } }],
  },
  // Its flags lie in memory, where no filter can look. Every C library falls back to clone.
  { call: same("clone3", 435), cases: always(ERRNO.ENOSYS) },
  { call: both("ioctl", 16, 29), cases: [{ when: [oneOf(1, TERMINAL_INPUT)], answer: { errno: ERRNO.EPERM } }] },
  {
    call: both("personality", 135, 92),
    cases: [
      { when: [oneOf(0, [ASK_PERSONALITY])], answer: "allow" },
      { when: [anyBit(0, ~PERSONALITY)], answer: { errno: ERRNO.EPERM } },
    ],
  },
];

const REFUSED: readonly SystemCall[] = [
  // Keys of the user who started Heddle.
  both("add_key", 248, 217),
  both("request_key", 249, 218),
  both("keyctl", 250, 219),
  // Files by handle, past every mount.
  both("open_by_handle_at", 304, 265),
  // Mounts and namespaces.
  both("mount", 165, 40),
  both("umount2", 166, 39),
  both("pivot_root", 155, 41),
  both("setns", 308, 268),
  same("open_tree", 428),
  same("move_mount", 429),
  same("fsopen", 430),
  same("fsconfig", 431),
  same("fsmount", 432),
  same("fspick", 433),
  same("mount_setattr", 442),
  same("open_tree_attr", 467),
  // Rarely used parts of the kernel that are open to every user.
  same("io_uring_setup", 425),
  same("io_uring_enter", 426),
  same("io_uring_register", 427),
  both("userfaultfd", 323, 282),
  both("bpf", 321, 280),
  both("perf_event_open", 298, 241),
  both("fanotify_init", 300, 262),
  both("lookup_dcookie", 212, 18),
  // Code of the kernel.
  both("kexec_load", 246, 104),
  both("kexec_file_load", 320, 294),
  both("init_module", 175, 105),
  both("finit_module", 313, 273),
  both("delete_module", 176, 106),
  { name: "create_module", x64: 174 },
  { name: "get_kernel_syms", x64: 177 },
  { name: "query_module", x64: 178 },
  { name: "uselib", x64: 134 },
  { name: "_sysctl", x64: 156 },
  both("nfsservctl", 180, 42),
  // The machine as a whole.
  both("syslog", 103, 116),
  both("acct", 163, 89),
  both("quotactl", 179, 60),
  same("quotactl_fd", 443),
  both("swapon", 167, 224),
  both("swapoff", 168, 225),
  both("reboot", 169, 142),
  both("sethostname", 170, 161),
  both("setdomainname", 171, 162),
  both("settimeofday", 164, 170),
  both("clock_settime", 227, 112),
  both("vhangup", 153, 58),
  { name: "iopl", x64: 172 },
  { name: "ioperm", x64: 173 },
];

export const RULES: readonly Rule[] = [
  ...FAMILIES,
  ...REFUSED.map((call): Rule => ({ call, cases: always(ERRNO.EPERM) })),
];

const O_NOATIME = 0x40000;
const F_SETFL = 4;
/** They share or compare the content of files. */
const SHARE_CONTENT = [
  0x40049409 /* FICLONE */, 0x4020940d /* FICLONERANGE */, 0xc0209436 /* FIDEDUPERANGE */,
] as const;

/**
 * Ways to read a file without changing its access time. Each may fail on some file system or for a file of another
 * user, so programs have a fallback.
 */
const UNSEEN_READS: readonly Rule[] = [
  { call: { name: "open", x64: 2 }, cases: [{ when: [anyBit(1, O_NOATIME)], answer: { errno: ERRNO.EPERM } }] },
  { call: both("openat", 257, 56), cases: [{ when: [anyBit(2, O_NOATIME)], answer: { errno: ERRNO.EPERM } }] },
  // Its flags lie in memory.
  { call: same("openat2", 437), cases: always(ERRNO.ENOSYS) },
  {
    call: both("fcntl", 72, 25),
    cases: [{ when: [oneOf(1, [F_SETFL]), anyBit(2, O_NOATIME)], answer: { errno: ERRNO.EPERM } }],
  },
  { call: both("copy_file_range", 326, 285), cases: always(ERRNO.ENOSYS) },
  { call: both("ioctl", 16, 29), cases: [{ when: [oneOf(1, SHARE_CONTENT)], answer: { errno: ERRNO.EOPNOTSUPP } }] },
];

/** For a room, which reports reads. Built on demand. */
export function roomRules(): readonly Rule[] {
  return [
    ...UNSEEN_READS.map(({ call, cases }) => ({ call, cases: [...cases, ...casesOf(call)] })),
    ...RULES.filter(({ call }) => UNSEEN_READS.every((rule) => rule.call.name !== call.name)),
  ];
}

function casesOf({ name }: SystemCall): readonly Case[] {
  return RULES.find(({ call }) => call.name === name)?.cases ?? [];
}
