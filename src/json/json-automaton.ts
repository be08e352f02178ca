/*
 * The grammar of JSON (RFC 8259) as an automaton over bytes. A table has, for a state and a byte, the next state or an
 * action of the scanner, which knows what is open. It can stop at any byte.
 */

/** Where a scanner is in a text. Numbers below `actions` are states; `fault` is no JSON. */
export const state = {
  fault: 0,
  /** A value has to come; after `[` or `{` also its end; after a comma in an object a key. */
  value: 1,
  firstItem: 2,
  firstKey: 3,
  key: 4,
  colon: 5,
  afterValue: 6,
  text: 7,
  zero: 8,
  integer: 9,
  fraction: 10,
  power: 11,
} as const

const escaped = 12
const hex = [13, 14, 15, 16] as const
const minus = 17
const point = 18
const exponent = 19
const sign = 20
const letters = 21

/** What a byte makes a scanner do. */
export const action = {
  openObject: 32,
  openArray: 33,
  close: 34,
  comma: 35,
  colon: 36,
  openText: 37,
  openKey: 38,
  closeText: 39,
  /** The first byte of a number or of a word; `scalarStates` has the state behind it. */
  scalar: 40,
} as const

const white = ' \t\r\n'
const digits = '0123456789'
const words = ['true', 'false', 'null']
const wholeNumbers: readonly number[] = [state.zero, state.integer, state.fraction, state.power]

/** The states of words, one for each letter behind the first. */
const firstLetters = words.map((_, index) => letters + words.slice(0, index).join('').length - index)

const createTransitions = (): Readonly<Uint8Array> => {
  const table = new Uint8Array(letters * 2 * 256)
  const on = (from: number, bytes: string, to: number): void => {
    for (const byte of Buffer.from(bytes)) table[from * 256 + byte] = to
  }
  for (const from of [state.value, state.firstItem, state.firstKey, state.key, state.colon, state.afterValue])
    on(from, white, from)
  for (const from of [state.value, state.firstItem]) {
    on(from, '{', action.openObject)
    on(from, '[', action.openArray)
    on(from, '"', action.openText)
    on(from, `-${digits}tfn`, action.scalar)
  }
  on(state.firstItem, ']', action.close)
  on(state.firstKey, '}', action.close)
  for (const from of [state.firstKey, state.key]) on(from, '"', action.openKey)
  on(state.colon, ':', action.colon)
  for (const from of [state.afterValue, ...wholeNumbers]) {
    on(from, white, state.afterValue)
    on(from, ',', action.comma)
    on(from, ']}', action.close)
  }
  table.fill(state.text, state.text * 256 + 0x20, (state.text + 1) * 256)
  on(state.text, '"', action.closeText)
  on(state.text, '\\', escaped)
  on(escaped, '"\\/bfnrt', state.text)
  on(escaped, 'u', hex[0])
  for (const [index, from] of hex.entries()) on(from, `${digits}abcdefABCDEF`, hex[index + 1] ?? state.text)
  on(minus, '0', state.zero)
  on(minus, '123456789', state.integer)
  on(state.integer, digits, state.integer)
  for (const from of [state.zero, state.integer]) on(from, '.', point)
  for (const from of [point, state.fraction]) on(from, digits, state.fraction)
  for (const from of [state.zero, state.integer, state.fraction]) on(from, 'eE', exponent)
  on(exponent, '+-', sign)
  for (const from of [exponent, sign, state.power]) on(from, digits, state.power)
  for (const [index, word] of words.entries()) {
    const first = firstLetters[index] ?? state.fault
    for (let at = 1; at < word.length; at += 1)
      on(first + at - 1, word.charAt(at), at === word.length - 1 ? state.afterValue : first + at)
  }
  return table
}

const createScalarStates = (): Readonly<Uint8Array> => {
  const states = new Uint8Array(256).fill(state.integer, 0x31, 0x3a)
  states.set([state.zero], 0x30)
  states.set([minus], 0x2d)
  for (const [index, word] of words.entries()) states.set(firstLetters.slice(index, index + 1), word.charCodeAt(0))
  return states
}

/** The next state or action: `transitions[state * 256 + byte]`. */
export const transitions = createTransitions()

/** The state behind the first byte of a number, or of `true`, `false` and `null`. */
export const scalarStates = createScalarStates()

/** Whether a value may end in this state, with nothing behind it. */
export const mayEnd = (at: number): boolean => at === state.afterValue || wholeNumbers.includes(at)
