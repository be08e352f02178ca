// The turns that a worker of Envoy holds, by the id that it gave their request, in an open hash table: from when they are asked for until Envoy is
// done with them. An entry is id, stream, deadline or kept text, how often it was asked for again, what is known of it, and where it stands. Envoy
// counts its ids up, so that neighbours rarely meet.

import { drop } from './kept-texts'

const entryBytes: u32 = 16
const capacity: u32 = 65_536
const table: usize = memory.data(1_048_576)
/** Half of the table: beyond it, searches would grow long. */
const most: u32 = 32_768

/** Its verdict is awaited. */
const asked: u8 = 0
/** Only the rest of its body is awaited. */
const decided: u8 = 1
/** It went on to its pod; what becomes of its answer is for answer.ts to say. */
export const wentOn: u8 = 2
/** Its answer is a stream, of which the end of the last piece is kept. */
export const streaming: u8 = 3
/** Its answer is one JSON text, which is held. */
export const holding: u8 = 4
/** Its answer is not looked at any more. */
export const passing: u8 = 5

const bodyIsThere: u8 = 1
const isTurn: u8 = 2
const isNoted: u8 = 4
const hasFailed: u8 = 8

let count: u32 = 0
let undecided: u32 = 0

/** Room for one more. */
export function hasRoom(): bool {
  return count < most
}

/** Whether no turn waits for its verdict. */
export function allDecided(): bool {
  return undecided === 0
}

/** Where an entry stands; 0 for none. */
export function find(id: u32): usize {
  let slot = id & (capacity - 1)
  while (true) {
    const entry = at(slot)
    const there = load<u32>(entry)
    if (there === 0) return 0
    if (there === id) return entry
    slot = (slot + 1) & (capacity - 1)
  }
}

/** A turn that is not there begins to wait for its verdict, until the tick `deadline`. */
export function add(id: u32, token: u32, deadline: u32, isWhole: bool): void {
  let slot = id & (capacity - 1)
  while (load<u32>(at(slot)) !== 0) slot = (slot + 1) & (capacity - 1)
  const entry = at(slot)
  store<u32>(entry, id)
  store<u32>(entry, token, 4)
  store<u32>(entry, deadline, 8)
  store<u8>(entry, 0, 12)
  store<u8>(entry, isWhole ? bodyIsThere : 0, 13)
  store<u8>(entry, asked, 14)
  count += 1
  undecided += 1
}

export function idOf(entry: usize): u32 {
  return load<u32>(entry)
}

/** The stream on which a turn was asked for. */
export function tokenOf(entry: usize): u32 {
  return load<u32>(entry, 4)
}

export function deadlineOf(entry: usize): u32 {
  return load<u32>(entry, 8)
}

export function setDeadline(entry: usize, deadline: u32): void {
  store<u32>(entry, deadline, 8)
}

/** Of a turn that is decided: the block with its kept text, see kept-texts.ts. */
export function blockOf(entry: usize): u32 {
  return load<u32>(entry, 8)
}

export function setBlock(entry: usize, block: u32): void {
  store<u32>(entry, block, 8)
}

/** How often a turn was asked for again. */
export function repeatsOf(entry: usize): u32 {
  return load<u8>(entry, 12)
}

/** Whether all of the request's body has come. */
export function isBodyThere(entry: usize): bool {
  return is(entry, bodyIsThere)
}

export function setBodyThere(entry: usize): void {
  set(entry, bodyIsThere)
}

/** Whether the gateway gave the request a ticket, so that its answer matters. */
export function hasTicket(entry: usize): bool {
  return is(entry, isTurn)
}

export function setTicket(entry: usize): void {
  set(entry, isTurn)
}

/** Whether something was noted on its answer. */
export function hasNotes(entry: usize): bool {
  return is(entry, isNoted)
}

export function setNoted(entry: usize): void {
  set(entry, isNoted)
}

/** Whether its stream told of an error. */
export function isFailed(entry: usize): bool {
  return is(entry, hasFailed)
}

export function setFailed(entry: usize): void {
  set(entry, hasFailed)
}

/** Where a turn stands whose verdict has come. */
export function stateOf(entry: usize): u8 {
  return load<u8>(entry, 14)
}

/** Moves a turn that is decided on, to one of the states behind. */
export function setState(entry: usize, state: u8): void {
  store<u8>(entry, state, 14)
}

export function isUndecided(entry: usize): bool {
  return load<u8>(entry, 14) === asked
}

/** Whether the verdict has come, and only the rest of the body is missing. */
export function wantsBody(entry: usize): bool {
  return load<u8>(entry, 14) === decided
}

/** The verdict has come. */
export function decide(entry: usize): void {
  undecided -= 1
  store<u8>(entry, decided, 14)
  setBlock(entry, 0)
}

/** A turn was asked for again, on another stream. */
export function repeat(entry: usize, token: u32, deadline: u32): void {
  store<u32>(entry, token, 4)
  store<u32>(entry, deadline, 8)
  store<u8>(entry, <u8>(repeatsOf(entry) + 1), 12)
}

/** Takes an entry out, and moves those behind it that it kept from their places. */
export function remove(entry: usize): void {
  count -= 1
  if (isUndecided(entry)) undecided -= 1
  else drop(blockOf(entry))
  let hole = <u32>(entry - table) / entryBytes
  let slot = hole
  while (true) {
    slot = (slot + 1) & (capacity - 1)
    const next = at(slot)
    const id = load<u32>(next)
    if (id === 0) break
    const home = id & (capacity - 1)
    if (((slot - home) & (capacity - 1)) < ((slot - hole) & (capacity - 1))) continue
    memory.copy(at(hole), next, entryBytes)
    hole = slot
  }
  store<u32>(at(hole), 0)
}

/** The entry at a place that waits for its verdict, 0 for none; places are 0 to `places - 1`. */
export function undecidedAt(place: u32): usize {
  const entry = at(place)
  return load<u32>(entry) === 0 || !isUndecided(entry) ? 0 : entry
}

export const places: u32 = capacity

function is(entry: usize, fact: u8): bool {
  return (load<u8>(entry, 13) & fact) !== 0
}

function set(entry: usize, fact: u8): void {
  store<u8>(entry, load<u8>(entry, 13) | fact, 13)
}

function at(slot: u32): usize {
  return table + <usize>(slot * entryBytes)
}
