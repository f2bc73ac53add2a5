/** Converts the GiB of the spec to the MB of vCenter, which are MiB. */
export const MB_IN_GIB = 1_024;
