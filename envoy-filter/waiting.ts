// The turns that Envoy holds, by the id that it gave their request, in an open hash table: those that wait for a verdict, and those that wait for the
// rest of their body. An entry is id, stream, deadline, how often it was asked for again, and what is there. Envoy counts its ids up, so that
// neighbours rarely meet.

const entryBytes: u32 = 16
const capacity: u32 = 65_536
const table: usize = memory.data(1_048_576)
/** Half of the table: beyond it, searches would grow long. */
const most: u32 = 32_768

let count: u32 = 0

/** Room for one more. */
export function hasRoom(): bool {
  return count < most
}

export function isEmpty(): bool {
  return count === 0
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
export function add(id: u32, token: u32, deadline: u32, bodyIsThere: bool): void {
  let slot = id & (capacity - 1)
  while (load<u32>(at(slot)) !== 0) slot = (slot + 1) & (capacity - 1)
  const entry = at(slot)
  store<u32>(entry, id)
  store<u32>(entry, token, 4)
  store<u32>(entry, deadline, 8)
  store<u16>(entry, 0, 12)
  store<u8>(entry, <u8>bodyIsThere, 14)
  store<u8>(entry, 0, 15)
  count += 1
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

/** How often a turn was asked for again. */
export function repeatsOf(entry: usize): u32 {
  return load<u16>(entry, 12)
}

/** Whether all of the request's body has come. */
export function isBodyThere(entry: usize): bool {
  return load<u8>(entry, 14) !== 0
}

export function setBodyThere(entry: usize): void {
  store<u8>(entry, 1, 14)
}

/** Whether the verdict has come, and only the rest of the body is missing. */
export function isDecided(entry: usize): bool {
  return load<u8>(entry, 15) !== 0
}

export function setDecided(entry: usize): void {
  store<u8>(entry, 1, 15)
}

/** A turn was asked for again, on another stream. */
export function repeat(entry: usize, token: u32, deadline: u32): void {
  store<u32>(entry, token, 4)
  store<u32>(entry, deadline, 8)
  store<u16>(entry, <u16>(repeatsOf(entry) + 1), 12)
}

/** Takes an entry out, and moves those behind it that it kept from their places. */
export function remove(entry: usize): void {
  count -= 1
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
  return load<u32>(entry) === 0 || isDecided(entry) ? 0 : entry
}

export const places: u32 = capacity

function at(slot: u32): usize {
  return table + <usize>(slot * entryBytes)
}
