/**
 * The same as `text.charCodeAt(index)`, for loops over short texts. Strings have half a dozen shapes inside the engine; where all of them come by, it
 * looks the method up anew for every character. Named in full, the method is known.
 */
export const codeAt = (text: string, index: number): number => String.prototype.charCodeAt.call(text, index)
