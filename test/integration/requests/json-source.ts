import fc from 'fast-check'

/** JSON as text, with everything that JSON leaves to its writer: blanks, escapes, notations, keys that come twice. */
interface JsonSource {
  readonly value: string
}

const blank = fc.string({ unit: fc.constantFrom(' ', '\t', '\r', '\n'), maxLength: 3 })

const between = (open: string, items: fc.Arbitrary<readonly string[]>, close: string): fc.Arbitrary<string> =>
  fc.tuple(blank, items, blank).map(([before, all, after]) => open + before + all.join(',') + after + close)

const padded = (source: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.tuple(blank, source, blank).map((parts) => parts.join(''))

const character = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('a', 'b', ' ', '{', '}', '[', ']', ',', ':', '/', "'") },
  fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).filter((text) => text >= ' ' && !/["\\]/.test(text)),
  fc.constantFrom('\\"', '\\\\', '\\/', '\\b', '\\f', '\\n', '\\r', '\\t'),
  fc.nat(0xffff).map((code) => `\\u${code.toString(16).padStart(4, '0')}`),
)

const text = fc.array(character, { maxLength: 12 }).map((all) => `"${all.join('')}"`)

/** Names that mean something to the gateway or to JavaScript, and any others. `model` is left to the test. */
const key = fc.oneof(
  fc.constantFrom('"id_slot"', '"cache_salt"', '"n_keep"', '"__proto__"', '"constructor"', '"id_sl\\u006ft"', '""'),
  text.filter((source) => JSON.parse(source) !== 'model'),
)

const number = fc.oneof(
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.constantFrom('-0', '1E5', '1e-7', '0.10', '123456789012345678901234567890', '1e400'),
)

const member = (name: fc.Arbitrary<string>, value: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.tuple(padded(name), padded(value)).map(([left, right]) => `${left}:${right}`)

const { value } = fc.letrec((tie: fc.LetrecTypedTie<JsonSource>) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small', withCrossShrink: true },
    fc.constantFrom('true', 'false', 'null'),
    number,
    text,
    between('[', fc.array(padded(tie('value')), { maxLength: 4 }), ']'),
    between('{', fc.array(member(fc.oneof(key, fc.constant('"model"')), tie('value')), { maxLength: 4 }), '}'),
  ),
}))

/** An object with the given member somewhere among others. */
export const objectWith = (wanted: string): fc.Arbitrary<string> =>
  padded(
    between(
      '{',
      fc
        .tuple(fc.array(member(key, value), { maxLength: 5 }), padded(fc.constant(wanted)), fc.nat(5))
        .map(([members, own, at]) => members.toSpliced(at, 0, own)),
      '}',
    ),
  )

/** A text with a character put in, taken out or replaced: nearly right is where readers differ. */
export const damaged = (source: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc
    .tuple(source, fc.nat(), fc.constantFrom(...Array.from('{}[]",:\\ue0 \n\f\u00a0x')), fc.nat(2))
    .map(([whole, position, put, edit]) => {
      const characters = Array.from(whole)
      const at = position % (characters.length + 1)
      return characters.toSpliced(at, edit === 0 ? 0 : 1, ...(edit === 1 ? [] : [put])).join('')
    })
