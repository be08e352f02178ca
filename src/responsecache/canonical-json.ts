/**
 * One text for all spellings of a JSON object: members sorted by name at every depth, no space between tokens, strings with the same escapes.
 * Numbers stay as they are written: `1` and `1.0` are not the same to every engine, and no digit is lost of one that a double cannot
 * hold. Members of the outermost object that are in `without` are left out.
 *
 * `text` must be valid JSON and nested no deeper than the stack allows. Undefined when an object has two members of one name: parsers differ
 * on which of them counts.
 */
export const canonicalJson = (text: string, options: { readonly without: ReadonlySet<string> }): string | undefined => {
  const writer = new CanonicalWriter(text)
  const canonical = writer.value(options.without)
  return writer.hasTwins ? undefined : canonical
}

const none: ReadonlySet<string> = new Set()

const quote = 0x22
const comma = 0x2c
const openBracket = 0x5b
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

/** Walks over a valid text once. */
class CanonicalWriter {
  readonly #text: string
  #at = 0
  #hasTwins = false

  constructor(text: string) {
    this.#text = text
  }

  get hasTwins(): boolean {
    return this.#hasTwins
  }

  value(without: ReadonlySet<string> = none): string {
    switch (this.#next()) {
      case openBrace:
        return this.#object(without)
      case openBracket:
        return this.#array()
      case quote:
        return this.#string()
      default:
        return this.#scalar()
    }
  }

  #object(without: ReadonlySet<string>): string {
    const members: { readonly name: string; readonly text: string }[] = []
    this.#at += 1
    while (this.#next() !== closeBrace) {
      if (this.#next() === comma) {
        this.#at += 1
        this.#next()
      }
      const name = this.#string()
      this.#next()
      // The colon.
      this.#at += 1
      const text = this.value()
      if (!without.has(name)) members.push({ name, text })
    }
    this.#at += 1
    members.sort((one, other) => (one.name < other.name ? -1 : Number(one.name > other.name)))
    if (members.some(({ name }, index) => name === members[index - 1]?.name)) this.#hasTwins = true
    return `{${members.map(({ name, text }) => `${name}:${text}`).join(',')}}`
  }

  #array(): string {
    const items: string[] = []
    this.#at += 1
    while (this.#next() !== closeBracket) {
      if (this.#next() === comma) this.#at += 1
      items.push(this.value())
    }
    this.#at += 1
    return `[${items.join(',')}]`
  }

  /** With its quotes. */
  #string(): string {
    const text = this.#text
    const start = this.#at
    let end = text.indexOf('"', start + 1)
    while (end !== -1 && isEscaped(text, end, start)) end = text.indexOf('"', end + 1)
    this.#at = end === -1 ? text.length : end + 1
    const raw = text.slice(start, this.#at)
    return raw.includes('\\') ? JSON.stringify(JSON.parse(raw)) : raw
  }

  #scalar(): string {
    const start = this.#at
    while (this.#at < this.#text.length && !endsScalar(this.#text.charCodeAt(this.#at))) this.#at += 1
    return this.#text.slice(start, this.#at)
  }

  /** The next character that is no space. At the end of the text, which no valid one reaches too early, a closing brace. */
  #next(): number {
    while (isSpace(this.#text.charCodeAt(this.#at))) this.#at += 1
    return this.#at < this.#text.length ? this.#text.charCodeAt(this.#at) : closeBrace
  }
}

const isSpace = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09

const endsScalar = (code: number): boolean =>
  code === comma || code === closeBrace || code === closeBracket || isSpace(code)

const isEscaped = (text: string, at: number, floor: number): boolean => {
  let before = at - 1
  while (before > floor && text.charCodeAt(before) === 0x5c) before -= 1
  return (at - before) % 2 === 0
}
