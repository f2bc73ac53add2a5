/** Whether two property values are deeply equal. */
export function isEqual(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (one instanceof Date || other instanceof Date)
    return one instanceof Date && other instanceof Date && one.getTime() === other.getTime();
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const ones = Object.entries(one);
  const others = new Map(Object.entries(other));
  return (
    ones.length === others.size &&
    ones.every(([key, value]) => others.has(key) && isEqual(value, others.get(key)))
  );
}
