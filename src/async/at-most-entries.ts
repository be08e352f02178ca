/** Options of an LRUCache of so many entries. Not `max`: with it lru-cache reserves room for all of them at once. */
export const atMostEntries = (maxEntries: number) => ({ maxSize: maxEntries, sizeCalculation: () => 1 })
