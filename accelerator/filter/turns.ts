// The turns that a worker of Envoy holds, by the id of their request, in an open hash table: from their ask until they
// are forwarded, answered or cancelled. An entry is id, stream, deadline, and how often it was asked again, with flags.
// Envoy counts ids up, so that neighbours rarely collide.

const entryBytes: u32 = 16
const capacity: u32 = 65_536
const table: usize = memory.data(1_048_576)
/** Half of the table: beyond it, searches would grow long. */
const maxTurns: u32 = 32_768

const bodyIsWhole: u8 = 1
/** The decision is there, and the rest of the body is awaited. */
const decided: u8 = 2

let count: u32 = 0
let undecided: u32 = 0

/** Room for one more. */
export function hasRoom(): bool {
  return count < maxTurns
}

/** Whether no turn waits for its decision. */
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

/** A turn that is not there begins to wait for its decision, until the tick `deadline`. */
export function add(id: u32, token: u32, deadline: u32, isWhole: bool): void {
  let slot = id & (capacity - 1)
  while (load<u32>(at(slot)) !== 0) slot = (slot + 1) & (capacity - 1)
  const entry = at(slot)
  store<u32>(entry, id)
  store<u32>(entry, token, 4)
  store<u32>(entry, deadline, 8)
  store<u8>(entry, 0, 12)
  store<u8>(entry, isWhole ? bodyIsWhole : 0, 13)
  count += 1
  undecided += 1
}

export function idOf(entry: usize): u32 {
  return load<u32>(entry)
}

/** The stream of the turn's ask. */
export function tokenOf(entry: usize): u32 {
  return load<u32>(entry, 4)
}

export function deadlineOf(entry: usize): u32 {
  return load<u32>(entry, 8)
}

export function setDeadline(entry: usize, deadline: u32): void {
  store<u32>(entry, deadline, 8)
}

/** How often a turn was asked again. */
export function repeatsOf(entry: usize): u32 {
  return load<u8>(entry, 12)
}

/** A turn was asked again, on another stream. */
export function repeat(entry: usize, token: u32, deadline: u32): void {
  store<u32>(entry, token, 4)
  store<u32>(entry, deadline, 8)
  store<u8>(entry, <u8>(repeatsOf(entry) + 1), 12)
}

export function isBodyWhole(entry: usize): bool {
  return (load<u8>(entry, 13) & bodyIsWhole) !== 0
}

export function setBodyWhole(entry: usize): void {
  store<u8>(entry, load<u8>(entry, 13) | bodyIsWhole, 13)
}

export function isUndecided(entry: usize): bool {
  return (load<u8>(entry, 13) & decided) === 0
}

/** The decision is there. */
export function decide(entry: usize): void {
  undecided -= 1
  store<u8>(entry, load<u8>(entry, 13) | decided, 13)
}

/** Takes an entry out, and moves those behind it that it kept from their places. */
export function remove(entry: usize): void {
  count -= 1
  if (isUndecided(entry)) undecided -= 1
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

/** The entry at a place that waits for its decision, 0 for none; places are 0 to `places - 1`. */
export function undecidedAt(place: u32): usize {
  const entry = at(place)
  return load<u32>(entry) === 0 || !isUndecided(entry) ? 0 : entry
}

export const places: u32 = capacity

function at(slot: u32): usize {
  return table + <usize>(slot * entryBytes)
}
