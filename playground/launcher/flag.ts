/** A command line option with its value as two arguments; none when there is no value. */
export function flag(name: string, value: string | number | undefined): readonly string[] {
  return value === undefined ? [] : [name, String(value)]
}
