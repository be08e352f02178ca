import fc from 'fast-check'

/** A kind of body: what comes before, again and again, and behind. */
interface Shape {
  readonly begin: string
  readonly items: readonly string[]
  readonly end: string
}

const anyName = fc.string({ maxLength: 12 })
const small = fc.oneof(
  fc.constantFrom('0', '1', 'null', '""', '[]', '{}'),
  fc.integer().map(String),
  fc.double({ noDefaultInfinity: true, noNaN: true }).map((value) => JSON.stringify(value)),
)
const escaped = fc.oneof(
  fc.constantFrom('\\n', '\\"', '\\\\', '\\/'),
  fc.nat(0xd7ff).map((code) => `\\u${code.toString(16).padStart(4, '0')}`),
)
const text = (unit: fc.Arbitrary<string>) =>
  fc.array(unit, { minLength: 1, maxLength: 60 }).map((parts) => parts.join(''))

/** Items of a prompt, of an object that no engine knows, or of one text. `plain`: as many bytes in one plain text. */
const kinds: Readonly<
  Record<string, { readonly in: 'prompt' | 'object' | 'text' | 'blank'; readonly item: fc.Arbitrary<string> }>
> = {
  plain: { in: 'text', item: fc.stringMatching(/^[a-z ]{20,60}$/) },
  numbers: { in: 'prompt', item: fc.nat(200_000).map(String) },
  digits: { in: 'prompt', item: fc.nat(9).map(String) },
  words: { in: 'prompt', item: fc.constantFrom('true', 'false', 'null') },
  texts: { in: 'prompt', item: fc.constantFrom('""', '"a"', '"\\n"') },
  'empty arrays': { in: 'prompt', item: fc.constantFrom('[]', '[[]]', '[[],[]]') },
  'empty objects': { in: 'prompt', item: fc.constantFrom('{}', '[{}]', '{"":{}}') },
  deep: {
    in: 'prompt',
    item: fc.integer({ min: 20, max: 60 }).map((depth) => `${'['.repeat(depth)}${']'.repeat(depth)}`),
  },
  keys: { in: 'object', item: fc.tuple(anyName, small).map(([name, value]) => `${JSON.stringify(name)}:${value}`) },
  models: { in: 'object', item: fc.constantFrom('"a":{"model":"x"}', '"model":{}', '"mode\\u006c":1') },
  escapes: { in: 'text', item: text(escaped) },
  wide: { in: 'text', item: text(fc.string({ unit: 'binary' }).map((value) => JSON.stringify(value).slice(1, -1))) },
  blanks: { in: 'blank', item: text(fc.constantFrom(' ', '\t', '\n', '\r')) },
  mixed: { in: 'prompt', item: fc.jsonValue({ maxDepth: 6 }).map((value) => JSON.stringify(value)) },
}

export const kindNames = Object.keys(kinds)

const samples = 500

const shapeOf = (name: string, model: string, seed: number): Shape => {
  const kind = kinds[name]
  if (kind === undefined) throw new Error(`the kind of a body is one of ${kindNames.join(', ')}`)
  const begin = `{"model":${JSON.stringify(model)},"max_tokens":1`
  const items = fc.sample(kind.item, { seed, numRuns: samples })
  switch (kind.in) {
    case 'prompt':
      return { begin: `${begin},"prompt":[1`, items: items.map((item) => `,${item}`), end: ']}' }
    case 'object':
      return { begin: `${begin},"prompt":"x","z":{"a":1`, items: items.map((item) => `,${item}`), end: '}}' }
    case 'text':
      return { begin: `${begin},"prompt":"`, items, end: '"}' }
    case 'blank':
      return { begin: `${begin},"prompt":"x"`, items, end: '}' }
  }
}

/** A body of a kind, whose items are drawn by the seed and repeated up to a size. */
export const bodyOf = (
  kind: string,
  options: { readonly model: string; readonly seed: number; readonly bytes: number },
): Buffer => {
  const { begin, items, end } = shapeOf(kind, options.model, options.seed)
  const round = Buffer.from(items.join(''))
  const room = options.bytes - begin.length - end.length
  const body: Buffer[] = [Buffer.from(begin)]
  let used = 0
  for (; used + round.length <= room; used += round.length) body.push(round)
  for (const item of items.map((each) => Buffer.from(each))) {
    if (used + item.length > room) break
    body.push(item)
    used += item.length
  }
  return Buffer.concat([...body, Buffer.from(end)])
}
