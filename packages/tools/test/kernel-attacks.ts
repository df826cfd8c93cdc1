/**
 * Attacks on what the kernel offers beside files: keys, sockets of odd families, namespaces, parts that few programs use. They
 * are made with perl, which can make any system call; where it is missing they fail, as held ones do.
 */
import type { Attack } from "./attacks.ts";

/** add_key, keyctl, userfaultfd. */
const [ADD_KEY, KEYCTL, USERFAULTFD] = process.arch === "arm64" ? [217, 219, 282] : [248, 250, 323];
const SESSION = -3;
const PLANTED_KEY = "heddle-canary";

/** Puts a key into a session keyring of its own, then becomes the program it is given. */
export const PLANT_KEY = `
  syscall(${KEYCTL}, 1, 0);
  my ($type, $name, $value) = ("user", "${PLANTED_KEY}", "CANARY-KEY");
  syscall(${ADD_KEY}, $type, $name, $value, length $value, ${SESSION});
  exec { $ARGV[0] } @ARGV; exit 126`;

const perl = (script: string): string => `perl -e '${script}'`;
/** Ends well when the call was let through, whatever came of it. */
const refusedOrNot = (call: string): string => perl(`exit(${call} < 0 && ($! == 1 || $! == 38) ? 1 : 0)`);
const opens = (family: number, protocol = 0, type = 3): string =>
  perl(`exit(socket(my $s, ${family}, ${type}, ${protocol}) ? 0 : 1)`);

const KERNEL: readonly Omit<Attack, "mode">[] = [
  {
    name: "12.7: reads a key of whoever started Heddle",
    command: perl(
      `my ($t, $n, $b) = ("user", "${PLANTED_KEY}", " " x 64); my $id = syscall(${KEYCTL}, 10, ${SESSION}, $t, $n, 0); exit 1 if $id < 0; exit(syscall(${KEYCTL}, 11, $id, $b, 64) > 0 ? 0 : 1)`,
    ),
    isHarmless: true,
  },
  {
    name: "12.7: plants a key for whoever started Heddle",
    command: perl(
      `my ($t, $n, $v) = ("user", "heddle-planted", "x"); exit(syscall(${ADD_KEY}, $t, $n, $v, 1, ${SESSION}) < 0 ? 1 : 0)`,
    ),
    isHarmless: true,
  },
  { name: "12.7: sets up io_uring", command: refusedOrNot("syscall(425, 1, 0)") },
  { name: "12.7: handles page faults", command: refusedOrNot(`syscall(${USERFAULTFD}, 1)`) },
  { name: "12.7: loads a program into the kernel", command: refusedOrNot("syscall(321, 99, 0, 0)") },
  { name: "12.7: reaches the host by vsock", command: opens(40, 0, 1), isHarmless: true },
  { name: "12.7: uses the kernel's ciphers", command: opens(38, 0, 5) },
  { name: "12.7: speaks to the packet filter", command: opens(16, 12) },
  { name: "12.7: speaks SCTP", command: opens(2, 132, 1) },
  { name: "12.7: makes a user namespace", command: "unshare -Ur true" },
  {
    name: "12.7: makes a user namespace with the newer call",
    command: perl(
      `my $a = pack("Q11", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0); my $p = syscall(435, $a, 88); exit($p < 0 ? 1 : 0)`,
    ),
  },
  {
    name: "12.7: asks by the numbers of x32",
    command: refusedOrNot(`syscall(0x40000000 + ${KEYCTL}, 0, ${SESSION}, 0)`),
  },
  {
    name: "12.7: changes a device of the host",
    command: 'mode=$(stat -c %a /dev/null) && chmod "$mode" /dev/null',
    isOpenToRootInBwrap: true,
  },
  {
    name: "12.7: writes into a named pipe of the host",
    command: 'echo leak > "$OUTSIDE_PIPE"',
    isHarmless: true,
    needs: "landlock",
  },
];

export const KERNEL_ATTACKS: readonly Attack[] = (["read-only", "workspace-write"] as const).flatMap((mode) =>
  KERNEL.map((attack): Attack => ({ ...attack, mode })),
);
