/**
 * A megabyte kept back, so that on a full disk a turn can still be ended on record: as a file, or, without room for
 * one, by taking nothing but ends while less than that is free. Used for terminal events only, refilled when there is
 * room.
 */
import { randomFillSync } from "node:crypto";
import { closeSync, openSync, unlinkSync, writeSync } from "node:fs";
import { clockMs } from "@heddle/protocol";
import { sizeOf } from "../home.ts";
import { faultOf, freeBytes } from "./store-errors.ts";

const RESERVE_BYTES = 1024 * 1024;
/** The reserve does not take the last room on the disk. */
const ROOM_BYTES = 2 * RESERVE_BYTES;
const RETRY_AFTER_MS = 1000;

export function openReserve(path: string) {
  let isFull = sizeOf(path) >= RESERVE_BYTES;
  let notBefore = 0;
  return {
    /** Others than ends may be written. Asks the disk each time, because other processes use the reserve too. */
    isKept(): boolean {
      isFull = sizeOf(path) >= RESERVE_BYTES;
      return isFull || freeBytes(path) >= RESERVE_BYTES;
    },
    release(): boolean {
      if (sizeOf(path) <= 0) return false;
      unlinkSync(path);
      isFull = false;
      notBefore = clockMs() + RETRY_AFTER_MS;
      return true;
    },
    /** Cheap when the reserve exists. Never fails: without room it is tried again later. */
    refill(): void {
      if (isFull || clockMs() < notBefore) return;
      notBefore = clockMs() + RETRY_AFTER_MS;
      isFull = fill(path);
    },
  };
}

function fill(path: string): boolean {
  if (sizeOf(path) >= RESERVE_BYTES) return true;
  try {
    if (freeBytes(path) < ROOM_BYTES) return false;
    const fd = openSync(path, "w", 0o600);
    try {
      // Random, because a compressing file system keeps no room for zeros.
      writeSync(fd, randomFillSync(Buffer.allocUnsafe(RESERVE_BYTES)));
    } finally {
      closeSync(fd);
    }
    return true;
  } catch (error) {
    if (faultOf(error) === "other") throw error;
    return false;
  }
}
