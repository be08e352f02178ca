/** A number from 0 up to, but not including, 1. */
export type RandomSource = () => number

/** One of the items, each as likely as the others. */
export const randomChoice = <T>(items: readonly [T, ...T[]], random: RandomSource): T =>
  items[Math.floor(random() * items.length)] ?? items[0]
