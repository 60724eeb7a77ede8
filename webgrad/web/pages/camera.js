// A camera's pictures: `openCamera` asks for it and gives a video that plays, `closeCamera` ends it.
// What the browser or its user refuses is an Error whose message says so.

async function openCamera() {
  if (!navigator.mediaDevices?.getUserMedia) {
    throw new Error("This browser gives pages no camera here: https or localhost is needed.");
  }
  const video = document.createElement("video");
  video.muted = video.playsInline = true;
  try {
    video.srcObject = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
  } catch (error) {
    throw new Error(error.name === "NotFoundError" ? "There is no camera." : "The camera was not allowed.");
  }
  await video.play();
  return video;
}

function closeCamera(video) {
  for (const track of video?.srcObject?.getTracks() ?? []) track.stop();
}

export { openCamera, closeCamera };
