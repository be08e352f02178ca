import { parseArgs } from 'node:util'

/** An option of a bench, `--name VALUE`. */
export interface BenchOption {
  /** What stands for its value in the help: `N`, `NAME`. */
  readonly value: string
  readonly meaning: string
  readonly default?: string
  /** It may be given more than once. */
  readonly multiple?: true
}

type OptionValues<Options extends Readonly<Record<string, BenchOption>>> = {
  readonly [Name in keyof Options]: Options[Name] extends { readonly multiple: true }
    ? readonly string[]
    : Options[Name] extends { readonly default: string }
      ? string
      : string | undefined
}

/** Reads the command line of a bench. `--help` prints what it does and its options; that, and an unknown option, ends the process. */
export const readOptions = <const Options extends Readonly<Record<string, BenchOption>>>(
  title: string,
  options: Options,
): OptionValues<Options> => {
  const entries = Object.entries<BenchOption>(options)
  const flags = entries.map(([name, { multiple = false, default: standard }]) => {
    const initial = multiple ? [] : standard
    return [name, { type: 'string', multiple, ...(initial !== undefined && { default: initial }) }] as const
  })
  const help = { help: { type: 'boolean', short: 'h', default: false } } as const
  try {
    const { values } = parseArgs({ options: { ...Object.fromEntries(flags), ...help } })
    if (values['help'] !== true) return values as unknown as OptionValues<Options>
    process.stdout.write(`${title}\n\n${entries.map(helpLine).join('\n')}\n`)
    process.exit(0)
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\nTry: --help\n`)
    process.exit(2)
  }
}

const helpLine = ([name, { value, meaning, default: standard, multiple }]: readonly [string, BenchOption]): string => {
  const note = multiple === true ? ' (may be repeated)' : standard === undefined ? '' : ` (default ${standard})`
  return `  ${`--${name} ${value}`.padEnd(30)}${meaning}${note}`
}
