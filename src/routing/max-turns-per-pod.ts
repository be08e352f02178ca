/** So many turns of one pod are known whose ends are still to come; of more, the oldest are forgotten. */
export const maxTurnsPerPod = 65_536
