-- Written by `make generate` from tools/argocd. Do not edit.
-- Health of an object of vmwright for Argo CD, by the rules of kstatus.
-- Uses no library of Lua: Argo CD loads none for checks in argocd-cm.
local conditions = {}
local observed = nil
if obj.status ~= nil then
  observed = obj.status.observedGeneration
  for _, condition in ipairs(obj.status.conditions or {}) do
    conditions[condition.type] = condition
  end
end

local function isTrue(type)
  return conditions[type] ~= nil and conditions[type].status == "True"
end

-- Returns the health with the message of a condition.
local function health(status, type)
  local condition = conditions[type] or {}
  local message = condition.message or ""
  if message == "" then
    message = condition.reason or ""
  end
  return { status = status, message = message }
end

if obj.metadata.deletionTimestamp ~= nil then
  return health("Progressing", "Ready")
end
if isTrue("Paused") then
  return health("Suspended", "Paused")
end
if observed ~= obj.metadata.generation then
  return { status = "Progressing", message = "vmwright has not processed the newest spec yet" }
end
if isTrue("Reconciling") then
  return health("Progressing", "Reconciling")
end
if isTrue("Stalled") then
  return health("Degraded", "Stalled")
end
if isTrue("Ready") then
  return health("Healthy", "Ready")
end
return health("Progressing", "Ready")
