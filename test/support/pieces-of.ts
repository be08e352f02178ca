/** A whole in pieces that end at these places, whatever numbers they are: some may be empty. */
export const piecesOf = (whole: string | Buffer, ends: readonly number[]): readonly Buffer[] => {
  const bytes = Buffer.from(whole)
  const places = [0, ...ends.map((end) => end % (bytes.length + 1)).toSorted((one, other) => one - other), bytes.length]
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end))
}
