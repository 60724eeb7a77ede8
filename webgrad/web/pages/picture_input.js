// Pictures as values of an input: from a file, or from a camera's frame.
// In: the facts of the input, its size, layout, mean and std. Out: numbers in the input's order.
import { closeCamera, openCamera } from "./camera.js";
import { element } from "./page_elements.js";
import { inputOf, seenBy, shrunk } from "./pictures.js";

// A picture, in the size that the model takes, as its input.
function numbersOf(facts, picture) {
  const { height, width } = facts;
  const canvas = element("canvas", { width, height });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.imageSmoothingQuality = "high";
  context.fillStyle = "#ffffff";
  context.fillRect(0, 0, width, height);
  context.drawImage(picture, 0, 0, width, height);
  const colours = shrunk(context.getImageData(0, 0, width, height).data, width, height, width, height);
  return Array.from(inputOf(facts, seenBy(facts, colours, false)));
}

function filePart(id, facts, use, fail) {
  const pick = element("input", { type: "file", id, accept: "image/*" });
  pick.addEventListener("change", async () => {
    const [file] = pick.files;
    pick.value = "";
    if (!file) return;
    try {
      const picture = await createImageBitmap(file);
      use(numbersOf(facts, picture), file.name);
      picture.close();
    } catch {
      fail(`${file.name} is no picture that the browser can read.`);
    }
  });
  return [pick, element("label", { class: "button", for: id }, "Picture …")];
}

// The button opens the camera, and then takes its picture.
function cameraPart(facts, use, fail) {
  let video = null;
  const place = element("div", { class: "camera" });
  const button = element("button", { type: "button" }, "Camera");
  button.addEventListener("click", async () => {
    try {
      if (video === null) {
        video = await openCamera();
        place.replaceChildren(video);
        button.textContent = "Take it";
        return;
      }
      use(numbersOf(facts, video), "camera");
    } catch (error) {
      fail(error.message);
    }
    closeCamera(video);
    video = null;
    place.replaceChildren();
    button.textContent = "Camera";
  });
  return [button, place];
}

// Elements that give an input pictures: `use(numbers, from)` takes one, `fail(words)` says what is wrong.
function pictureTools(name, facts, use, fail) {
  return [...filePart(`picture-${name}`, facts, use, fail), ...cameraPart(facts, use, fail)];
}

export { pictureTools };
