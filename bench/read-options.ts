import { parseArgs } from 'node:util'

/** An option of a bench, `--name VALUE`. */
export interface BenchOption {
  /** What stands for its value in the help: `N`, `NAME`; `TEXT,…` for several values. */
  readonly value: string
  readonly meaning: string
  /** The empty text: not set. */
  readonly default: string
}

/** The values of an option that takes several. */
export const listOf = (text: string): readonly string[] => text.split(',').filter((part) => part !== '')

/** Reads the command line of a bench. `--help`, which prints what it does, and an unknown option end the process. */
export const readOptions = <const Name extends string>(
  title: string,
  options: Readonly<Record<Name, BenchOption>>,
): Readonly<Record<Name, string>> => {
  const entries = Object.entries<BenchOption>(options)
  const flags = entries.map(([name, { default: initial }]) => [name, { type: 'string', default: initial }] as const)
  const help = { help: { type: 'boolean', short: 'h', default: false } } as const
  try {
    const { values } = parseArgs({ options: { ...Object.fromEntries(flags), ...help } })
    if (values['help'] !== true) return values as Readonly<Record<Name, string>>
    process.stdout.write(`${title}\n\n${entries.map(helpLine).join('\n')}\n`)
    process.exit(0)
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\nTry: --help\n`)
    process.exit(2)
  }
}

const helpLine = ([name, { value, meaning, default: initial }]: readonly [string, BenchOption]): string =>
  `  ${`--${name} ${value}`.padEnd(30)}${meaning}${initial === '' ? '' : ` (default ${initial})`}`
