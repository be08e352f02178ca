import { closest, distance } from 'fastest-levenshtein'

const maxDifference = 0.4

/** What a misspelt name was probably meant to be: at most two in five letters differ, regardless of case. */
export const nearestName = (name: string, names: readonly string[]): string | undefined => {
  const wanted = name.toLowerCase()
  const nearest = closest(
    wanted,
    names.map((known) => known.toLowerCase()),
  )
  if (distance(wanted, nearest ?? '') > Math.max(1, wanted.length * maxDifference)) return undefined
  return names.find((known) => known.toLowerCase() === nearest)
}

/** `There is no command sevre. Did you mean serve?` */
export const unknownName = (what: string, name: string, names: readonly string[]): string => {
  const nearest = nearestName(name, names)
  return `There is no ${what} ${name}.${nearest === undefined ? '' : ` Did you mean ${nearest}?`}`
}
