import { isUtf8 } from 'node:buffer'
import { action, mayEnd, scalarStates, state, transitions } from './json-automaton.ts'
import { readJson } from './read-json.ts'

/** Limits of a JSON text that the gateway reads. */
export interface JsonLimits {
  /** Deepest nesting of objects and arrays. */
  readonly maxJsonDepth: number
  /** Most object members in the whole text, and most arrays and objects. */
  readonly maxJsonKeys: number
}

/** A member of the outermost object. Of several with one name it is the last. */
export interface JsonMember {
  /** Its value in the text: from its first byte, to the one behind its last. */
  readonly start: number
  readonly end: number
  /** How often its name occurs. */
  readonly count: number
  /** Items of a value that is an array; of an object its members. */
  readonly items: number
  /** Whether one of the items is neither an object nor an array. */
  readonly hasScalars: boolean
}

/** Result of a scan. */
export type JsonScan =
  | {
      readonly kind: 'object'
      /** The wanted members that it has. */
      readonly members: ReadonlyMap<string, JsonMember>
      /** Values in the whole text, the object itself among them. */
      readonly values: number
    }
  | { readonly kind: 'other-json' }
  | { readonly kind: 'not-json' }
  | { readonly kind: 'not-utf8' }
  | { readonly kind: 'too-complex' }

/** Bytes of a slice: at most 5 ms, mostly less than 1 ms. */
const sliceBytes = 65_536
/** UTF-8 is checked so many times as fast as JSON. */
const utf8Factor = 16
/** Longest spelling of a character of a name. */
const escapedBytes = 6
const none: readonly string[] = []

/**
 * Checks that bytes are one JSON text in UTF-8, and finds the members of its outermost object that are `wanted`, by
 * names in ASCII. It builds no value, so that its time and memory depend on the length alone; it yields after each slice.
 */
export function* scanJsonObject(
  text: Buffer,
  limits: JsonLimits,
  wanted: readonly string[] = none,
): Generator<undefined, JsonScan> {
  for (let at = 0; at < text.length; ) {
    const end = endOfCharacter(text, at + utf8Factor * sliceBytes)
    if (!isUtf8(text.subarray(at, end))) return { kind: 'not-utf8' }
    at = end
    if (at < text.length) yield
  }
  const scanner = new Scanner(text, limits, wanted)
  for (let at = 0; at < text.length; ) {
    at = Math.min(at + sliceBytes, text.length)
    const fault = scanner.scanTo(at)
    if (fault !== undefined) return { kind: fault }
    if (at < text.length) yield
  }
  return scanner.end()
}

/** A place that is not in the middle of a character, which has at most four bytes. */
const endOfCharacter = (text: Buffer, end: number): number => {
  if (end >= text.length) return text.length
  let at = end
  while (at > end - 3 && ((text[at] ?? 0) & 0xc0) === 0x80) at -= 1
  return at
}

type Fault = 'not-json' | 'too-complex'

class Scanner {
  readonly #text: Buffer
  readonly #limits: JsonLimits
  readonly #wanted: readonly string[]
  readonly #maxKeyBytes: number
  readonly #members = new Map<string, { -readonly [Field in keyof JsonMember]: JsonMember[Field] }>()
  /** Whether what is open at a depth is an object. */
  readonly #isObject: boolean[] = [false]
  #at = 0
  #state: number = state.value
  #depth = 0
  #keys = 0
  #containers = 0
  #values = 0
  #keyStart = 0
  #keyEnd = 0
  #isKey = false
  /** The wanted member whose value is open. */
  #member: string | undefined

  constructor(text: Buffer, limits: JsonLimits, wanted: readonly string[]) {
    this.#text = text
    this.#limits = limits
    this.#wanted = wanted
    this.#maxKeyBytes = 2 + escapedBytes * Math.max(0, ...wanted.map((name) => name.length))
  }

  /** Scans up to a place. Undefined: there is no fault so far. */
  scanTo(until: number): Fault | undefined {
    const text = this.#text
    let current = this.#state
    for (let at = this.#at; at < until; at += 1) {
      const byte = text[at] ?? 0
      const next = transitions[current * 256 + byte] ?? state.fault
      // Most bytes are in the middle of a text.
      if (next === current) continue
      if (next > state.fault && next < action.openObject) {
        current = next
        continue
      }
      const fault = this.#act(next, at, byte)
      if (fault !== undefined) return fault
      current = this.#state
    }
    this.#state = current
    this.#at = until
    return undefined
  }

  /** The result, at the end of the text. */
  end(): JsonScan {
    if (this.#depth > 0 || !mayEnd(this.#state)) return { kind: 'not-json' }
    if (this.#isObject[1] !== true) return { kind: 'other-json' }
    return { kind: 'object', members: this.#members, values: this.#values }
  }

  /** Does what the byte is there for, and sets the state behind it. */
  #act(what: number, at: number, byte: number): Fault | undefined {
    switch (what) {
      case action.comma:
        if (this.#depth === 0) return 'not-json'
        if (this.#depth === 1) this.#endMember(at)
        this.#state = this.#isObject[this.#depth] === true ? state.key : state.value
        return undefined
      case action.scalar:
        this.#begin(at, true)
        this.#state = scalarStates[byte] ?? state.fault
        return undefined
      case action.openText:
        this.#begin(at, true)
        this.#state = state.text
        return undefined
      case action.openKey:
        this.#isKey = true
        this.#keyStart = at
        this.#state = state.text
        return undefined
      case action.closeText:
        this.#closeText(at)
        return undefined
      case action.colon:
        this.#keys += 1
        this.#state = state.value
        return this.#keys > this.#limits.maxJsonKeys ? 'too-complex' : undefined
      case action.openObject:
      case action.openArray:
        return this.#open(at, what === action.openObject)
      case action.close:
        return this.#close(at, byte)
      default:
        return 'not-json'
    }
  }

  /** A value begins. */
  #begin(at: number, isScalar: boolean): void {
    this.#values += 1
    if (this.#depth === 1 && this.#isObject[1] === true) this.#beginMember(at)
    else if (this.#depth === 2 && this.#member !== undefined) this.#addItem(this.#member, isScalar)
  }

  #beginMember(at: number): void {
    if (this.#keyEnd - this.#keyStart > this.#maxKeyBytes) return
    const first = this.#text[this.#keyStart + 1]
    if (first !== backslash && !this.#wanted.some((name) => name.charCodeAt(0) === first)) return
    const name = readJson(this.#text.toString('utf8', this.#keyStart, this.#keyEnd))
    if (typeof name !== 'string' || !this.#wanted.includes(name)) return
    this.#member = name
    const count = 1 + (this.#members.get(name)?.count ?? 0)
    this.#members.set(name, { start: at, end: 0, count, items: 0, hasScalars: false })
  }

  #addItem(name: string, isScalar: boolean): void {
    const member = this.#members.get(name)
    if (member === undefined) return
    member.items += 1
    member.hasScalars ||= isScalar
  }

  /** What follows the value of a member, or its last byte, was met: the first one of them counts. */
  #endMember(end: number): void {
    const member = this.#member === undefined ? undefined : this.#members.get(this.#member)
    if (member !== undefined) member.end = end
    this.#member = undefined
  }

  #closeText(at: number): void {
    this.#state = this.#isKey ? state.colon : state.afterValue
    if (this.#isKey) this.#keyEnd = at + 1
    else if (this.#depth === 1) this.#endMember(at + 1)
    this.#isKey = false
  }

  #open(at: number, asObject: boolean): Fault | undefined {
    this.#begin(at, false)
    this.#depth += 1
    this.#containers += 1
    this.#isObject[this.#depth] = asObject
    this.#state = asObject ? state.firstKey : state.firstItem
    const { maxJsonDepth, maxJsonKeys } = this.#limits
    return this.#depth > maxJsonDepth || this.#containers > maxJsonKeys ? 'too-complex' : undefined
  }

  #close(at: number, byte: number): Fault | undefined {
    if (this.#depth === 0 || this.#isObject[this.#depth] !== (byte === closingBrace)) return 'not-json'
    if (this.#depth === 1) this.#endMember(at)
    this.#depth -= 1
    if (this.#depth === 1) this.#endMember(at + 1)
    this.#state = state.afterValue
    return undefined
  }
}

const backslash = 0x5c
const closingBrace = 0x7d
