import { type ParseArgsConfig, parseArgs } from 'node:util'
import { unknownName } from './nearest-name.ts'

/** Options of a command, as `parseArgs` takes them. */
export type Flags = NonNullable<ParseArgsConfig['options']>

/** What stands on a command line, or what is wrong with it. */
export type ParsedFlags<T extends Flags> =
  | {
      readonly kind: 'parsed'
      readonly values: ReturnType<typeof parseArgs<{ options: T }>>['values']
      readonly positionals: readonly string[]
    }
  | { readonly kind: 'invalid'; readonly message: string }

/** `parseArgs` of Node.js, which also says what an unknown option was probably meant to be. */
export const parseFlags = <const T extends Flags>(
  args: readonly string[],
  flags: T,
  { maxPositionals = 0 }: { readonly maxPositionals?: number } = {},
): ParsedFlags<T> => {
  const invalid = (message: string) => ({ kind: 'invalid', message }) as const
  const config = { args: [...args], options: flags, allowPositionals: true } as const
  for (const token of parseArgs({ ...config, strict: false, tokens: true }).tokens) {
    if (token.kind === 'option' && !Object.hasOwn(flags, token.name)) {
      const known = Object.keys(flags).map((name) => `--${name}`)
      return invalid(unknownName('option', token.rawName, known))
    }
  }
  try {
    const { values, positionals } = parseArgs(config)
    const surplus = positionals[maxPositionals]
    return surplus === undefined
      ? { kind: 'parsed', values, positionals }
      : invalid(`The argument ${surplus} is one too many.`)
  } catch (error) {
    return invalid(error instanceof Error ? error.message : String(error))
  }
}
