/**
 * Assembles the rules of system-calls.ts into a program of classic BPF, as seccomp(2) takes it: an array of 8-byte
 * instructions { code u16, jump if true u8, jump if false u8, operand u32 }. Each block ends in a return or falls through to
 * the next one, so every jump is forward and short.
 */
import { AUDIT_ARCH, ERRNO, LAST_KNOWN, type Case, type Machine, type Rule, type Test } from "./system-calls.ts";

/** Of linux/bpf_common.h. */
export const BPF = { LOAD: 0x20, RETURN: 0x06, IF_EQUAL: 0x15, IF_GREATER: 0x25, IF_ANY_BIT: 0x45 } as const;

/** Of linux/seccomp.h. */
export const RETURN = { ALLOW: 0x7fff0000, ERRNO: 0x00050000, KILL_PROCESS: 0x80000000 } as const;

/** Offsets into struct seccomp_data, little-endian on both machines. */
const NUMBER = 0;
const ARCH = 4;
const lowHalf = (argument: number): number => 16 + 8 * argument;

type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, operand: number];

/** A call in any other convention than the machine's own ends its process. */
export function assembleFilter(machine: Machine, rules: readonly Rule[]): Buffer {
  const program: Instruction[] = [
    load(ARCH),
    [BPF.IF_EQUAL, 1, 0, AUDIT_ARCH[machine]],
    giveBack(RETURN.KILL_PROCESS),
    load(NUMBER),
    [BPF.IF_GREATER, 0, 1, LAST_KNOWN],
    refuse(ERRNO.ENOSYS),
  ];
  for (const rule of rules) program.push(...ruleBlock(rule, machine));
  program.push(giveBack(RETURN.ALLOW));
  // Both machines are little-endian, as this array is on them.
  const words = new Uint32Array(program.length * 2);
  let at = 0;
  for (const [code, ifTrue, ifFalse, operand] of program) {
    words[at] = code | (ifTrue << 16) | (ifFalse << 24);
    words[at + 1] = operand;
    at += 2;
  }
  return Buffer.from(words.buffer);
}

function ruleBlock({ call, cases }: Rule, machine: Machine): readonly Instruction[] {
  const number = call[machine];
  if (number === undefined) return [];
  const body = cases.flatMap(caseBlock);
  // Without a match it would fall into the next rule.
  if (cases.at(-1)?.when.length !== 0) body.push(giveBack(RETURN.ALLOW));
  return [[BPF.IF_EQUAL, 0, body.length, number], ...body];
}

function caseBlock({ when, answer }: Case): readonly Instruction[] {
  const given = answer === "allow" ? giveBack(RETURN.ALLOW) : refuse(answer.errno);
  // From the last test to the first: a failed test jumps over all that follow.
  return when.reduceRight<readonly Instruction[]>((rest, test) => [...testBlock(test, rest.length), ...rest], [given]);
}

function testBlock(test: Test, past: number): readonly Instruction[] {
  if (test.kind === "any-bit") return [load(lowHalf(test.argument)), [BPF.IF_ANY_BIT, 0, past, test.bits]];
  const { values } = test;
  const last = values.length - 1;
  return [
    load(lowHalf(test.argument)),
    ...values.map((value, index): Instruction => [BPF.IF_EQUAL, last - index, index === last ? past : 0, value]),
  ];
}

function load(offset: number): Instruction {
  return [BPF.LOAD, 0, 0, offset];
}

function giveBack(value: number): Instruction {
  return [BPF.RETURN, 0, 0, value];
}

function refuse(errno: number): Instruction {
  return giveBack(RETURN.ERRNO | errno);
}
