/** The program is run by a second reading of what BPF means, over every number, and compared with the table. */
import { expect, test } from "vitest";
import { assembleFilter, BPF, RETURN } from "./system-call-filter.ts";
import { AUDIT_ARCH, ERRNO, LAST_KNOWN, roomRules, RULES, type Machine } from "./system-calls.ts";

const PROGRAMS = { x64: assembleFilter("x64", RULES), arm64: assembleFilter("arm64", RULES) };
const ROOM_RULES = roomRules();
const ROOM_PROGRAMS = { x64: assembleFilter("x64", ROOM_RULES), arm64: assembleFilter("arm64", ROOM_RULES) };
const MAX_INSTRUCTIONS = 4096;

interface Call {
  readonly machine: Machine;
  /** In whose convention it is made; absent: the machine's own. */
  readonly arch?: number;
  readonly number: number;
  readonly args?: readonly bigint[];
  readonly isRoom?: boolean;
}

function interpret({ machine, arch = AUDIT_ARCH[machine], number, args = [], isRoom = false }: Call): number {
  const program = (isRoom ? ROOM_PROGRAMS : PROGRAMS)[machine];
  const data = Buffer.alloc(64);
  data.writeUInt32LE(number >>> 0, 0);
  data.writeUInt32LE(arch >>> 0, 4);
  for (const [index, value] of args.entries()) data.writeBigUInt64LE(BigInt.asUintN(64, value), 16 + 8 * index);
  let accumulator = 0;
  for (let at = 0; at < program.length / 8; at += 1) {
    const [code, ifTrue, ifFalse, operand] = [
      program.readUInt16LE(at * 8),
      program.readUInt8(at * 8 + 2),
      program.readUInt8(at * 8 + 3),
      program.readUInt32LE(at * 8 + 4),
    ];
    const go = (isTrue: boolean): void => void (at += isTrue ? ifTrue : ifFalse);
    if (code === BPF.LOAD) accumulator = data.readUInt32LE(operand);
    else if (code === BPF.RETURN) return operand;
    else if (code === BPF.IF_EQUAL) go(accumulator === operand);
    else if (code === BPF.IF_GREATER) go(accumulator > operand);
    else if (code === BPF.IF_ANY_BIT) go((accumulator & operand) !== 0);
    else throw new Error(`instruction ${at} has the unknown code ${code}`);
  }
  throw new Error("the program ends without an answer");
}

const errno = (number: number): number => RETURN.ERRNO | number;
const machines = Object.keys(AUDIT_ARCH) as Machine[];
const numberOf = (name: string, machine: Machine): number => {
  const number = ROOM_RULES.find(({ call }) => call.name === name)?.call[machine];
  if (number === undefined) throw new Error(`no number of ${name}`);
  return number;
};

test.each(machines)("%s: every number is answered as the table says, and unknown ones do not exist", (machine) => {
  const refused = new Map(
    RULES.filter(({ cases }) => cases.length === 1 && cases[0]?.when.length === 0).map(({ call, cases }) => {
      const [{ answer } = { answer: "allow" as const }] = cases;
      return [call[machine], answer === "allow" ? RETURN.ALLOW : errno(answer.errno)];
    }),
  );
  const byArgument = new Set(["socket", "socketpair"].map((name) => numberOf(name, machine)));
  for (let number = 0; number < 1100; number += 1) {
    const expected =
      number > LAST_KNOWN
        ? errno(ERRNO.ENOSYS)
        : byArgument.has(number)
          ? errno(ERRNO.EAFNOSUPPORT)
          : (refused.get(number) ?? RETURN.ALLOW);
    expect(interpret({ machine, number }), `call ${number}`).toBe(expected);
  }
  // x32 has the bit 0x40000000; -1 is what a tracer leaves.
  for (const number of [0x40000000, 0x40000029, 0x7fffffff, 0x80000000, 0xffffffff]) {
    expect(interpret({ machine, number })).toBe(errno(ERRNO.ENOSYS));
  }
});

test.each(machines)("%s: another machine's convention ends the process, whatever it calls", (machine) => {
  const others = machines.filter((other) => other !== machine).map((other) => AUDIT_ARCH[other]);
  // i386, arm, riscv64, x86-64 without its mark of 64 bit, nothing.
  for (const arch of [...others, 0x40000003, 0x40000028, 0xc00000f3, 0x3e, 0]) {
    for (let number = 0; number < 500; number += 1) {
      expect(interpret({ machine, arch, number })).toBe(RETURN.KILL_PROCESS);
    }
  }
});

test.each(machines)(
  "%s: sockets are of four families, with the protocols of the internet and routes only",
  (machine) => {
    const socket = (family: bigint, protocol = 0n): number =>
      interpret({ machine, number: numberOf("socket", machine), args: [family, 1n, protocol] });
    const families = Array.from({ length: 64 }, (_, family) => family);
    expect(families.filter((family) => socket(BigInt(family)) === RETURN.ALLOW)).toEqual([1, 2, 10, 16]);
    expect(families.filter((family) => socket(BigInt(family)) === errno(ERRNO.EAFNOSUPPORT)).length).toBe(60);
    const protocols = Array.from({ length: 300 }, (_, protocol) => protocol);
    for (const family of [2n, 10n]) {
      const allowed = protocols.filter((protocol) => socket(family, BigInt(protocol)) === RETURN.ALLOW);
      expect(allowed).toEqual([0, 1, 6, 17, 58, 262]);
    }
    const routes = protocols.filter((protocol) => socket(16n, BigInt(protocol)) === RETURN.ALLOW);
    expect(routes).toEqual([0]);
    // The kernel takes the low half of both: what is above it changes nothing.
    expect(socket(0xffff_ffff_0000_0001n)).toBe(RETURN.ALLOW);
    expect(socket(0x1_0000_0028n)).toBe(errno(ERRNO.EAFNOSUPPORT));
    const pairs = families.filter(
      (family) =>
        interpret({ machine, number: numberOf("socketpair", machine), args: [BigInt(family)] }) === RETURN.ALLOW,
    );
    expect(pairs).toEqual([1]);
  },
);

test.each(machines)("%s: no new namespaces, processes and threads as usual", (machine) => {
  const ask = (name: string, flags: number): number =>
    interpret({ machine, number: numberOf(name, machine), args: [BigInt(flags >>> 0)] });
  const namespaces = [0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000];
  for (const flag of namespaces) {
    expect(ask("clone", flag | 17)).toBe(errno(ERRNO.EPERM));
    expect(ask("unshare", flag)).toBe(errno(ERRNO.EPERM));
  }
  expect(ask("unshare", 0x80)).toBe(errno(ERRNO.EPERM));
  // fork, a thread of a C library, vfork; a table of descriptors of one's own.
  for (const flags of [17, 0x3d0f00, 0x4111]) expect(ask("clone", flags)).toBe(RETURN.ALLOW);
  expect(ask("unshare", 0x400)).toBe(RETURN.ALLOW);
  expect(ask("clone3", 17)).toBe(errno(ERRNO.ENOSYS));
});

test.each(machines)("%s: terminals are not typed into, and a process stays an ordinary one", (machine) => {
  const ioctl = (request: bigint): number =>
    interpret({ machine, number: numberOf("ioctl", machine), args: [0n, request] });
  for (const request of [0x5412n, 0x541cn, 0xffff_ffff_0000_5412n]) expect(ioctl(request)).toBe(errno(ERRNO.EPERM));
  for (const request of [0x5401n, 0x5413n, 0x541bn, 0x5421n]) expect(ioctl(request)).toBe(RETURN.ALLOW);
  const personality = (value: number): number =>
    interpret({ machine, number: numberOf("personality", machine), args: [BigInt(value >>> 0)] });
  for (const value of [0, 8, 0x20000, 0x40000, 0x40008, 0xffffffff]) expect(personality(value)).toBe(RETURN.ALLOW);
  for (const value of [1, 0x400000, 0x100000, 0x200000, 0x440000]) {
    expect(personality(value)).toBe(errno(ERRNO.EPERM));
  }
});

test.each(machines)("%s: it is small enough for the kernel, and every jump stays inside", (machine) => {
  const program = PROGRAMS[machine];
  expect(program.length / 8).toBeLessThan(MAX_INSTRUCTIONS);
  expect(program.readUInt16LE(program.length - 8)).toBe(BPF.RETURN);
  for (let at = 0; at < program.length / 8 - 1; at += 1) {
    const reach = Math.max(program.readUInt8(at * 8 + 2), program.readUInt8(at * 8 + 3));
    expect(at + 1 + reach).toBeLessThan(program.length / 8);
  }
});

test("12.7: what was found open is refused", () => {
  const names = ["add_key", "request_key", "keyctl", "io_uring_setup", "userfaultfd", "bpf", "perf_event_open"];
  for (const machine of machines) {
    for (const name of names) expect(interpret({ machine, number: numberOf(name, machine) })).toBe(errno(ERRNO.EPERM));
    // AF_VSOCK, AF_ALG, AF_PACKET.
    for (const family of [40n, 38n, 17n]) {
      const call = { machine, number: numberOf("socket", machine), args: [family, 1n, 0n] };
      expect(interpret(call)).toBe(errno(ERRNO.EAFNOSUPPORT));
    }
  }
});

test.each(machines)(
  "13: %s: in a room every rule holds, and reads that leave no trace are refused besides",
  (machine) => {
    const noAccessTime = 0x40000n;
    const answers = (name: string, args: readonly bigint[]): readonly number[] =>
      [false, true].map((isRoom) => interpret({ machine, number: numberOf(name, machine), args, isRoom }));
    expect(answers("openat", [0n, 0n, noAccessTime])).toEqual([RETURN.ALLOW, errno(ERRNO.EPERM)]);
    expect(answers("openat", [noAccessTime, noAccessTime, 0x80241n])).toEqual([RETURN.ALLOW, RETURN.ALLOW]);
    expect(answers("openat2", [])).toEqual([RETURN.ALLOW, errno(ERRNO.ENOSYS)]);
    expect(answers("fcntl", [0n, 4n, noAccessTime | 0x800n])).toEqual([RETURN.ALLOW, errno(ERRNO.EPERM)]);
    for (const command of [0n, 2n])
      expect(answers("fcntl", [0n, command, noAccessTime])).toEqual([RETURN.ALLOW, RETURN.ALLOW]);
    expect(answers("copy_file_range", [])).toEqual([RETURN.ALLOW, errno(ERRNO.ENOSYS)]);
    for (const request of [0x40049409n, 0x4020940dn, 0xc0209436n]) {
      expect(answers("ioctl", [0n, request])).toEqual([RETURN.ALLOW, errno(ERRNO.EOPNOTSUPP)]);
    }
    expect(answers("ioctl", [0n, 0x5412n])).toEqual([errno(ERRNO.EPERM), errno(ERRNO.EPERM)]);
    const own = new Set(
      ["open", "openat", "openat2", "fcntl", "copy_file_range"].map((name) => callNumber(name, machine)),
    );
    for (let number = 0; number < 1100; number += 1) {
      if (!own.has(number)) expect(interpret({ machine, number, isRoom: true })).toBe(interpret({ machine, number }));
    }
  },
);

function callNumber(name: string, machine: Machine): number | undefined {
  return ROOM_RULES.find(({ call }) => call.name === name)?.call[machine];
}
